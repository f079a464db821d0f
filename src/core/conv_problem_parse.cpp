// Text to ConvProblem: the descriptor's half. What benchdnn means by a descriptor is its documentation's
// (tests/benchdnn/doc/driver_conv.md of oneDNN) and was checked against its reader.
#include <array>
#include <charconv>
#include <optional>

#include "core/conv_problem.hpp"
#include "core/conv_problem_text.hpp"

namespace sl {
namespace text {

Error token_error(std::string_view token, std::size_t offset, const std::string& what) {
  constexpr std::size_t longest = 40;
  std::string shown(token.substr(0, longest));
  if (token.size() > longest) shown += "...";
  return {Code::invalid, "token `" + shown + "` at character " + std::to_string(offset + 1) + ": " + what};
}

namespace {

enum Slot : std::size_t {
  g,
  mb,
  ic,
  id,
  ih,
  iw,
  oc,
  od,
  oh,
  ow,
  kd,
  kh,
  kw,
  sd,
  sh,
  sw,
  pd,
  ph,
  pw,
  dd,
  dh,
  dw,
  slots
};

struct Key {
  std::string_view name;
  std::int64_t missing;  // its value where the text does not say
  std::int64_t limit = std::int64_t{1} << 31;
};

constexpr std::int64_t unsaid = -1;
constexpr std::array<Key, slots> keys = {{{"g", unsaid},
                                          {"mb", 2, std::int64_t{1} << 40},
                                          {"ic", 0},
                                          {"id", 0},
                                          {"ih", 0},
                                          {"iw", 0},
                                          {"oc", 0},
                                          {"od", 0},
                                          {"oh", 0},
                                          {"ow", 0},
                                          {"kd", 0},
                                          {"kh", 0},
                                          {"kw", 0},
                                          {"sd", 1},
                                          {"sh", 1},
                                          {"sw", 1},
                                          {"pd", unsaid},
                                          {"ph", unsaid},
                                          {"pw", unsaid},
                                          {"dd", 0, (std::int64_t{1} << 31) - 1},
                                          {"dh", 0, (std::int64_t{1} << 31) - 1},
                                          {"dw", 0, (std::int64_t{1} << 31) - 1}}};

// The numbers of a descriptor and where each stood.
struct Scan {
  std::array<std::int64_t, slots> value;
  std::array<std::string_view, slots> token;
  std::array<std::size_t, slots> offset{};
  std::size_t end = 0;

  Scan() {
    for (std::size_t i = 0; i < slots; ++i) value[i] = keys[i].missing;
  }
  // An error about a number: points at its token, or says that it is missing.
  Error error(Slot slot, const std::string& what) const {
    if (token[slot].empty()) return {Code::invalid, "`" + std::string(keys[slot].name) + "` is missing: " + what};
    return token_error(token[slot], offset[slot], what);
  }
};

std::optional<Slot> key_at(std::string_view rest) {
  for (std::size_t i = 0; i < slots; ++i) {
    if (rest.starts_with(keys[i].name)) return static_cast<Slot>(i);
  }
  return std::nullopt;
}

// The token at `from`, as an error shows it: up to the next blank or underscore.
std::string_view shown_token(std::string_view text, std::size_t from) {
  std::size_t end = from;
  while (end < text.size() && !is_blank(text[end]) && (end == from || text[end] != '_')) ++end;
  return text.substr(from, end - from);
}

Status scan_number(std::string_view text, Slot slot, std::size_t& at, Scan& scan) {
  const Key& key = keys[slot];
  const std::size_t start = at;
  const char* first = text.data() + start + key.name.size();
  const char* last = text.data() + text.size();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(first, last, value);
  if (error == std::errc::invalid_argument) {
    return token_error(
        shown_token(text, start), start,
        "`" + std::string(key.name) + "` must be followed by a whole number, as in `" + std::string(key.name) + "3`");
  }
  const std::string_view token = text.substr(start, static_cast<std::size_t>(end - text.data()) - start);
  if (error != std::errc() || value < 0 || value >= key.limit) {
    return token_error(token, start, "the number must be from 0 to " + std::to_string(key.limit - 1));
  }
  scan.value[slot] = value;
  scan.token[slot] = token;
  scan.offset[slot] = start;
  at = start + token.size();
  return {};
}

// n"a name" or nname: runs to its closing quote or to the next blank.
Result<std::size_t> skip_name(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  if (end < text.size() && text[end] == '"') {
    end = text.find('"', end + 1);
    if (end == std::string_view::npos) {
      return token_error(text.substr(at), at, "the name must end with a double quote, as in `n\"conv1\"`");
    }
    ++end;
    if (end < text.size() && !is_blank(text[end])) {
      return token_error(text.substr(end), end, "the name must be the descriptor's last token");
    }
    return end;
  }
  while (end < text.size() && !is_blank(text[end])) ++end;
  return end;
}

Result<Scan> scan_tokens(std::string_view text) {
  Scan scan;
  std::size_t at = 0;
  while (at < text.size() && is_blank(text[at])) ++at;
  const std::size_t start = at;
  while (at < text.size() && !is_blank(text[at])) {
    if (text[at] == '_') {
      ++at;
    } else if (const auto slot = key_at(text.substr(at))) {
      SL_TRY(scan_number(text, *slot, at, scan));
    } else if (text[at] == 'n') {
      SL_ASSIGN(at, skip_name(text, at));
      break;
    } else {
      return token_error(shown_token(text, at), at,
                         "unknown; a descriptor is made of g mb ic ih iw oc oh ow kh kw sh sw ph pw dh dw, each with a "
                         "number, and an optional n\"name\" at its end");
    }
  }
  if (at == start) {
    return Error{Code::invalid,
                 "the text is empty; a descriptor such as g32mb1ic32ih112oc32oh112kh3ph1 would be right"};
  }
  scan.end = at;
  return scan;
}

// One spatial axis as benchdnn's rules see it, before and after what is missing was worked out.
struct Axis {
  Slot in, out, kernel, stride, pad, dilation;
};
constexpr Axis depth = {id, od, kd, sd, pd, dd};
constexpr Axis rows = {ih, oh, kh, sh, ph, dh};
constexpr Axis columns = {iw, ow, kw, sw, pw, dw};

bool absent(const Scan& scan, const Axis& axis) {
  const auto& v = scan.value;
  return v[axis.in] == 0 && v[axis.kernel] == 0 && v[axis.out] == 0 && v[axis.dilation] == 0 && v[axis.stride] == 1 &&
         v[axis.pad] < 1;
}

// Every number is below 2^31, so the products stay in int64.
Status deduce(Scan& scan, const Axis& axis) {
  auto& v = scan.value;
  for (const Slot slot : {axis.in, axis.kernel}) {
    if (v[slot] == 0) return scan.error(slot, "its number must be at least 1");
  }
  const std::int64_t effective = (v[axis.kernel] - 1) * (v[axis.dilation] + 1) + 1;
  if (v[axis.out] != 0) {
    const std::int64_t total = (v[axis.out] - 1) * v[axis.stride] + effective - v[axis.in];
    if (v[axis.pad] < 0) v[axis.pad] = total > 0 ? total / 2 : 0;
    return {};
  }
  if (v[axis.pad] < 0) v[axis.pad] = 0;
  const std::int64_t room = v[axis.in] + 2 * v[axis.pad] - effective;
  if (room < 0) {
    return scan.error(axis.in, "the padded input, " + std::to_string(room + effective) +
                                   ", must hold the effective kernel, " + std::to_string(effective) + " (" +
                                   std::string(keys[axis.kernel].name) + " " + std::to_string(v[axis.kernel]) +
                                   ", dilation from 0 " + std::to_string(v[axis.dilation]) + ")");
  }
  v[axis.out] = room / v[axis.stride] + 1;
  return {};
}

void copy_axis(Scan& scan, const Axis& from, const Axis& to) {
  auto& v = scan.value;
  v[to.in] = v[from.in];
  v[to.out] = v[from.out];
  v[to.kernel] = v[from.kernel];
  v[to.stride] = v[from.stride];
  v[to.pad] = v[from.pad];
  v[to.dilation] = v[from.dilation];
}

Status complete(Scan& scan) {
  auto& v = scan.value;
  if (v[g] == unsaid) v[g] = 1;
  for (const Slot slot : {g, ic, oc, sd, sh, sw}) {
    if (v[slot] == 0) return scan.error(slot, "its number must be at least 1");
  }
  if (!absent(scan, depth)) {
    for (const Slot slot : {id, od, kd, sd, pd, dd}) {
      if (v[slot] != keys[slot].missing && v[slot] != 0) {
        return scan.error(slot, "3-D convolutions are not supported; 1-D (iw kw) and 2-D (ih kh) are");
      }
    }
  }
  const bool has_rows = !absent(scan, rows);
  const bool has_columns = !absent(scan, columns);
  if (!has_rows && !has_columns) return scan.error(ih, "a descriptor needs ih and kh, or iw and kw for conv1d");
  if (has_rows) SL_TRY(deduce(scan, rows));
  if (has_columns) SL_TRY(deduce(scan, columns));
  if (!has_columns) copy_axis(scan, rows, columns);
  if (!has_rows) {
    v[ih] = v[oh] = v[kh] = v[sh] = 1;
    v[ph] = v[dh] = 0;
  }
  return {};
}

}  // namespace

Result<std::size_t> parse_descriptor(std::string_view text, ConvProblem& problem) {
  SL_ASSIGN(Scan scan, scan_tokens(text));
  SL_TRY(complete(scan));
  const auto& v = scan.value;
  problem.groups = v[g];
  problem.n = v[mb];
  problem.c = v[ic];
  problem.h = v[ih];
  problem.w = v[iw];
  problem.k = v[oc];
  problem.p = v[oh];
  problem.q = v[ow];
  problem.r = v[kh];
  problem.s = v[kw];
  problem.stride_h = v[sh];
  problem.stride_w = v[sw];
  problem.pad_top = v[ph];
  problem.pad_left = v[pw];
  problem.dil_h = v[dh] + 1;
  problem.dil_w = v[dw] + 1;
  return scan.end;
}

}  // namespace text

Result<ConvProblem> parse(std::string_view text, ParseDefaults defaults) {
  ConvProblem problem;
  problem.dtype = defaults.dtype;
  problem.layout = defaults.layout;
  SL_ASSIGN(const std::size_t end, text::parse_descriptor(text, problem));
  SL_TRY(text::parse_attributes(text, end, problem));
  return validated(problem);
}

}  // namespace sl
