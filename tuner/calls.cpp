#include "tuner/calls.hpp"

#include <algorithm>
#include <charconv>
#include <random>
#include <set>

#include "tuner/print.hpp"

namespace sl::tool {
namespace {

template <class T, class Parse>
Result<std::vector<T>> each(const char* flag, const std::vector<std::string>& texts, Parse parse, const char* right) {
  std::vector<T> values;
  for (const std::string& text : texts) {
    const auto value = parse(text);
    if (!value) return Error{Code::invalid, std::string(flag) + " " + text + ": use " + right};
    values.push_back(*value);
  }
  return values;
}

}  // namespace

Result<SuiteDefaults> defaults_of(const Options& o) {
  SuiteDefaults defaults;
  defaults.batches_win = !o.batches.empty();
  if (defaults.batches_win) defaults.batches = o.batches;
  defaults.dtypes_win = !o.dtypes.empty();
  defaults.layouts_win = !o.tags.empty();
  const std::vector<std::string> dtypes = defaults.dtypes_win ? o.dtypes : std::vector<std::string>{"f16"};
  const std::vector<std::string> tags = o.tags.empty() ? std::vector<std::string>{"nchw", "nhwc"} : o.tags;
  SL_ASSIGN(defaults.dtypes, each<DType>(
                                 "--dt", dtypes, [](const auto& t) { return parse_dtype(t); }, "f32, f16 or bf16"));
  SL_ASSIGN(defaults.layouts, each<Layout>(
                                  "--tag", tags, [](const auto& t) { return parse_layout(t); }, "nchw or nhwc"));
  return defaults;
}

Result<std::vector<ConvProblem>> calls_of(const Options& o) {
  SL_ASSIGN(const SuiteDefaults defaults, defaults_of(o));
  std::vector<ConvProblem> all;
  for (const std::string& path : o.suites) {
    SL_ASSIGN(const auto problems, load_suite(path, defaults));
    all.insert(all.end(), problems.begin(), problems.end());
  }
  std::set<std::string> seen;
  std::erase_if(all, [&seen](const ConvProblem& call) { return !seen.insert(call.to_string()).second; });
  // A sample is the first part of one shuffle, so that a larger one only adds.
  if (o.sample > 0) {
    std::mt19937_64 random(o.seed);
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
    all.resize(std::min(all.size(), static_cast<std::size_t>(o.sample)));
  }
  SL_ASSIGN(const Shard shard, parse_shard(o.shard));
  std::size_t place = 0;
  std::erase_if(all, [&](const ConvProblem&) { return place++ % shard.count != shard.index - 1; });
  return all;
}

Result<Shard> parse_shard(const std::string& text) {
  Shard shard;
  if (text.empty()) return shard;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  if (index.ec == std::errc() && index.ptr != end && *index.ptr == '/') {
    const auto count = std::from_chars(index.ptr + 1, end, shard.count);
    if (count.ec == std::errc() && count.ptr == end && shard.index >= 1 && shard.index <= shard.count) return shard;
  }
  return Error{Code::invalid, "--shard " + text + ": must be I/N with 1 <= I <= N, for example 1/4"};
}

bool LongWork::out_of_budget() const { return budget_ > 0 && seconds() > budget_; }

void LongWork::at(std::size_t place, const std::string& what) {
  done_ = place;
  const auto before = static_cast<double>(done_ - 1);
  const double left = done_ <= 1 ? 0 : seconds() / before * (static_cast<double>(count_) - before);
  progress(std::to_string(done_) + "/" + std::to_string(count_) + ", " +
           (done_ == 1 ? "" : number(left) + " s left, ") + what);
}

double LongWork::seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

}  // namespace sl::tool
