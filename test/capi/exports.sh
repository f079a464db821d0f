#!/bin/sh
# The library exports the C ABI and nothing else: every defined dynamic symbol is sluice_* or the version node, and every
# function of the header is there.
set -eu
library=$1 header=$2
exported=$(nm -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | sort -u)
foreign=$(printf '%s\n' "$exported" | grep -v -e '^sluice_' -e '^SLUICE_[0-9]*$' || true)
if [ -n "$foreign" ]; then
  echo "$library exports what is not the C ABI:" && printf '%s\n' "$foreign"
  exit 1
fi
declared=$(tr '\n' ' ' < "$header" | grep -o 'SLUICE_API [^;(]*(' | grep -o 'sluice_[a-z0-9_]*(' | tr -d '(' | sort -u)
test -n "$declared"
for function in $declared; do
  printf '%s\n' "$exported" | grep -qx "$function" || { echo "$library lacks $function"; exit 1; }
done
printf '%s\n' "$exported" | while read -r symbol; do
  case $symbol in SLUICE_*) continue ;; esac
  printf '%s\n' "$declared" | grep -qx "$symbol" || { echo "$header does not declare $symbol"; exit 1; }
done
echo "exports: $(printf '%s\n' "$declared" | wc -l) functions"
