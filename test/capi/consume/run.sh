#!/bin/sh
# Uses the library as its users do.
#   run.sh package BUILD WORK    install from BUILD, then find_package, then pkg-config
#   run.sh subdirectory SOURCE WORK LAUNCHER FLAGS   the source tree as a part of the user's project; with a compiler cache
#                                                    as LAUNCHER, FLAGS are those of a build that has filled it
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mode=$1 from=$2 work=$3
rm -rf "$work" && mkdir -p "$work"
work=$(cd "$work" && pwd)

run_both() {
  "$1/consumer_c"
  "$1/consumer_cpp"
}

case $mode in
  package)
    cmake --install "$from" --component library --prefix "$work/first" > "$work/install.log"
    mv "$work/first" "$work/moved"  # an installed tree can be moved
    cmake -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" > "$work/configure.log"
    cmake --build "$work/build" > "$work/build.log" || { cat "$work/build.log"; exit 1; }
    run_both "$work/build"
    readelf -d "$work/build/consumer_c" | grep -q 'NEEDED.*libsluice\.so\.[0-9]'
    if command -v pkg-config > /dev/null; then
      pc=$(dirname "$(find "$work/moved" -name sluice.pc)")
      flags=$(PKG_CONFIG_PATH="$pc" pkg-config --cflags --libs sluice)
      lib=$(PKG_CONFIG_PATH="$pc" pkg-config --variable=libdir sluice)
      # shellcheck disable=SC2086
      cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$here/consumer.c" -o "$work/by_pkg_config" $flags -Wl,-rpath,"$lib"
      test "$("$work/by_pkg_config")" = "sluice $(PKG_CONFIG_PATH="$pc" pkg-config --modversion sluice)"
    else
      echo "no pkg-config here: sluice.pc is not tried"
    fi
    ;;
  subdirectory)
    flags=
    [ -z "${4:-}" ] || flags="${5:-}"
    cmake -S "$here" -B "$work/build" -DSLUICE_SOURCE="$from" -DCMAKE_CXX_COMPILER_LAUNCHER="${4:-}" \
      -DCMAKE_CXX_FLAGS="$flags" -DSLUICE_WERROR=ON > "$work/configure.log"
    cmake --build "$work/build" --target consumer_c consumer_cpp -j 2 > "$work/build.log" || { tail -n 40 "$work/build.log"; exit 1; }
    run_both "$work/build"
    ;;
  *)
    echo "usage: run.sh package|subdirectory FROM WORK [LAUNCHER FLAGS]" && exit 2
    ;;
esac
echo "consumed by $mode"
