// Suites of lines: recordings, and the batch files of benchdnn's convolution driver.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "tuner/suite_forms.hpp"

namespace sl::tool {
namespace {

/// What benchdnn's flags say of the descriptors that follow. An empty list leaves it to the descriptor or the caller.
struct State {
  Stated stated;
  std::vector<std::optional<Layout>> source, destination;  ///< nullopt = any
  Bias bias = Bias::none;
  std::map<std::string, std::string> not_served;  ///< by flag: why what follows is left out
  std::map<std::string, std::string> partly;      ///< by flag: which of its values is
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  for (std::size_t end = text.find(separator); end != std::string::npos; end = text.find(separator, at)) {
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  parts.push_back(text.substr(at));
  return parts;
}

/// "f16", or "f16:f16:f16" of source, weights and destination.
std::optional<DType> dtype_of(const std::string& text) {
  const auto parts = split(text, ':');
  if (std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return part != parts.front(); })) return {};
  return parse_dtype(parts.front());
}

bool layout_of(const std::string& tag, std::optional<Layout>& layout) {
  for (const char* const known : {"abx", "nchw", "ncw", "abcd", "abc"}) {
    if (tag == known) return layout = Layout::nchw, true;
  }
  for (const char* const known : {"axb", "nhwc", "nwc", "acdb", "acb"}) {
    if (tag == known) return layout = Layout::nhwc, true;
  }
  layout.reset();
  return tag.empty() || tag == "any";
}

bool is_driver(std::string_view name) {
  static constexpr std::string_view drivers[] = {"binary", "bnorm",   "brgemm",  "concat",     "deconv",    "eltwise",
                                                 "gnorm",  "graph",   "ip",      "lnorm",      "lrn",       "matmul",
                                                 "pool",   "prelu",   "reorder", "resampling", "reduction", "rnn",
                                                 "self",   "shuffle", "softmax", "sum",        "zeropad"};
  return std::find(std::begin(drivers), std::end(drivers), name) != std::end(drivers);
}

class Reader {
 public:
  Reader(const SuiteDefaults& defaults, Suite& suite) : defaults_(defaults), suite_(suite) {}

  Status file(const std::string& text, const std::string& path, int depth) {
    int number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      Status status = line(text.substr(at, end - at), path, depth);
      ++number;
      if (!status.ok()) {
        // An included file has said where already.
        if (status.error().message.starts_with("suite ")) return status;
        return Error{status.error().code,
                     "suite " + path + ", line " + std::to_string(number) + ": " + status.error().message};
      }
      at = end + 1;
    }
    return {};
  }

 private:
  /// Flags and a descriptor may share a line.
  Status line(std::string text, const std::string& path, int depth) {
    text = text.substr(0, text.find('#'));
    while (true) {
      const std::size_t start = text.find_first_not_of(" \t\r");
      if (start == std::string::npos) return {};
      text.erase(0, start);
      const bool is_flag = text.starts_with("--");
      // A descriptor has its key=value tokens behind it, up to the next flag.
      const std::size_t end = is_flag ? text.find_first_of(" \t\r") : std::min(text.find(" --"), text.find("\t--"));
      std::string part = text.substr(0, end);
      text.erase(0, part.size());
      part.erase(part.find_last_not_of(" \t\r") + 1);
      SL_TRY(is_flag ? flag(part, path, depth) : descriptor(part));
    }
  }

  Status flag(const std::string& text, const std::string& path, int depth) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(2, equals == std::string::npos ? equals : equals - 2);
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (name == "reset") {
      state_ = {};
    } else if (name == "conv") {
      state_.not_served.erase("driver");
    } else if (is_driver(name) && equals == std::string::npos) {
      state_.not_served["driver"] = "driver --" + name;
    } else if (name == "dt" || name == "cfg") {
      dtypes(name, value);
    } else if (name == "stag" || name == "dtag" || name == "tag") {
      tags(name, value);
    } else if (name == "mb") {
      return batches(value);
    } else if (name == "dir") {
      direction(value);
    } else if (name == "batch") {
      return include(value, path, depth);
    } else if (name.starts_with("attr-") && name != "attr-scratchpad" && name != "attr-fpmath") {
      refuse(name, !value.empty(), text);
    }
    return {};  // the others (--mode, --alg, ...) say nothing about a problem
  }

  void refuse(const std::string& name, bool refused, const std::string& why) {
    state_.not_served.erase(name);
    if (refused) state_.not_served[name] = why;
  }

  /// Of a flag's values some are served: one that is not takes no other away.
  void refuse_one(const std::string& name, const std::string& other, bool alone) {
    const std::string why = "--" + name + "=" + other;
    refuse(name, alone, why);
    state_.partly.erase(name);
    if (!alone && !other.empty()) state_.partly[name] = why;
  }

  void dtypes(const std::string& name, const std::string& value) {
    state_.stated.dtypes.clear();
    std::string other;
    for (const std::string& one : split(value, ',')) {
      if (one.empty()) continue;
      if (const auto dtype = dtype_of(one)) {
        state_.stated.dtypes.push_back(*dtype);
      } else {
        other = one;
      }
    }
    refuse_one(name, other, !other.empty() && state_.stated.dtypes.empty());
  }

  void tags(const std::string& name, const std::string& value) {
    std::vector<std::optional<Layout>> layouts;
    std::string other;
    for (const std::string& one : split(value, ',')) {
      std::optional<Layout> layout;
      if (layout_of(one, layout)) {
        layouts.push_back(layout);
      } else {
        other = one;
      }
    }
    refuse_one(name, other, layouts.empty());
    if (name != "dtag") state_.source = layouts;
    if (name != "stag") state_.destination = layouts;
  }

  Status batches(const std::string& value) {
    std::vector<std::int64_t> batches;
    for (const std::string& one : split(value, ',')) {
      std::int64_t n = 0;
      const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), n);
      if (error != std::errc() || end != one.data() + one.size() || n < 0 || n >= (std::int64_t{1} << 40)) {
        return Error{Code::invalid, "--mb=" + value + ": must be batch sizes, or 0 for the descriptor's own"};
      }
      if (n > 0) batches.push_back(n);
    }
    state_.stated.batches = batches;
    return {};
  }

  void direction(const std::string& value) {
    const auto forward = [](const std::string& one) { return one.empty() || one.starts_with("FWD_"); };
    const auto all = split(value, ',');
    const auto first = std::find_if(all.begin(), all.end(), forward);  // others repeat the same shapes
    state_.bias = first != all.end() && *first == "FWD_B" ? Bias::same : Bias::none;
    refuse("dir", first == all.end(), "--dir=" + value);
  }

  Status include(const std::string& name, const std::string& path, int depth) {
    constexpr int deepest = 10;
    if (depth >= deepest) return Error{Code::invalid, "--batch=" + name + ": more than 10 files deep"};
    const std::filesystem::path beside = std::filesystem::path(path).parent_path() / name;
    SL_ASSIGN(const std::string text, suite_file(beside.string()));
    return file(text, beside.string(), depth + 1);
  }

  /// The layouts of stag and dtag together; false where they contradict each other.
  bool layouts(std::vector<Layout>& out) const {
    std::vector<std::optional<Layout>> any = {std::nullopt};
    bool open = false;
    for (const auto& source : state_.source.empty() ? any : state_.source) {
      for (const auto& destination : state_.destination.empty() ? any : state_.destination) {
        const auto layout = source ? source : destination;
        if (source && destination && *source != *destination) continue;
        open = open || !layout;
        if (layout && std::find(out.begin(), out.end(), *layout) == out.end()) out.push_back(*layout);
      }
    }
    if (open) out.clear();
    return open || !out.empty();
  }

  Status descriptor(const std::string& text) {
    if (!state_.not_served.empty()) {
      ++suite_.left_out[state_.not_served.begin()->second];
      return {};
    }
    for (const auto& [name, why] : state_.partly) ++suite_.left_out[why];
    Stated open = state_.stated;
    if (!layouts(open.layouts)) {
      ++suite_.left_out["source and destination of different layouts"];
      return {};
    }
    const bool bias = state_.bias != Bias::none && text.find(" bias=") == std::string::npos;
    const auto problems = expand_text(bias ? text + " bias=same" : text, open, defaults_);
    if (!problems.ok()) {
      if (problems.error().message.find("3-D convolutions") == std::string::npos) return problems.error();
      ++suite_.left_out["3-D"];
      return {};
    }
    std::vector<std::string> networks;
    if (std::string network = network_of(text); !network.empty()) networks.push_back(std::move(network));
    for (const ConvProblem& problem : *problems) suite_.calls.push_back({problem, 1, networks});
    return {};
  }

  /// "resnet" of n"resnet:conv1".
  static std::string network_of(const std::string& text) {
    const std::size_t start = text.find("n\"");
    if (start == std::string::npos) return {};
    const std::size_t end = text.find_first_of(":\"", start + 2);
    return text.substr(start + 2, end - start - 2);
  }

  const SuiteDefaults& defaults_;
  Suite& suite_;
  State state_;
};

}  // namespace

Result<Suite> suite_of_lines(const std::string& text, const std::string& path, const SuiteDefaults& defaults) {
  Suite suite;
  suite.kind = Suite::Kind::lines;
  SL_TRY(Reader(defaults, suite).file(text, path, 0));
  return suite;
}

}  // namespace sl::tool
