#include "tuner/measured.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace sl::tool {
namespace {

using Json = nlohmann::json;

std::string joined(const std::set<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

class Reader {
 public:
  Status line(const std::string& text, const std::string& where) {
    try {
      const Json row = Json::parse(text);
      if (row.contains("gpu")) return header(row, where);
      return call(row, where);
    } catch (const Json::exception& error) {
      return Error{Code::invalid, where + ": " + error.what()};
    }
  }

  Result<MeasuredFile> done() && {
    if (out_.calls.empty()) return Error{Code::invalid, "no measured call: nothing to derive from"};
    if (out_.gpu.empty()) return Error{Code::invalid, "no header line that names the GPU"};
    out_.baseline = joined(baselines_);
    out_.versions = joined(versions_);
    return std::move(out_);
  }

 private:
  Status header(const Json& row, const std::string& where) {
    const std::string gpu = row.at("gpu");
    if (!out_.gpu.empty() && gpu != out_.gpu) {
      return Error{Code::invalid, where + ": gpu = \"" + gpu + "\", but others are of " + out_.gpu};
    }
    out_.gpu = gpu;
    out_.capability = row.at("capability");
    const int cudnn = row.at("cudnn");
    baselines_.insert("fastest of cuDNN " + std::to_string(cudnn / 10000) + "." + std::to_string(cudnn / 100 % 100) +
                      " (every engine), PyTorch " + row.at("torch").get<std::string>() + " eager and native");
    const std::string commit = row.value("commit", ""), driver = row.value("driver", "");
    versions_.insert("sluice " + row.at("sluice").get<std::string>() + (commit.empty() ? "" : " at " + commit) +
                     (driver.empty() ? "" : ", driver " + driver));
    return {};
  }

  Status call(const Json& row, const std::string& where) {
    const Json none = Json::object();
    const Json& rivals = row.contains("rivals") ? row.at("rivals") : none;
    if (rivals.empty()) return {};  // nobody to compare with
    MeasuredCall call;
    auto problem = parse(row.at("signature").get<std::string>());
    if (!problem.ok()) return Error{Code::invalid, where + ": signature: " + problem.error().message};
    call.problem = *problem;
    call.baseline_us = std::numeric_limits<double>::infinity();
    for (const auto& [name, us] : rivals.items()) call.baseline_us = std::min(call.baseline_us, us.get<double>());
    const bool failed = row.contains("error") || !row.contains("time_us");
    // Finite, so that means over all calls stay numbers.
    call.time_us = failed ? 1000 * call.baseline_us : row.at("time_us").get<double>();
    if (!(call.time_us > 0) || !(call.baseline_us > 0)) {
      return Error{Code::invalid, where + ": a time is not above 0"};
    }
    out_.failed += failed ? 1 : 0;
    out_.calls.push_back(call);
    return {};
  }

  MeasuredFile out_;
  std::set<std::string> baselines_, versions_;
};

}  // namespace

Result<MeasuredFile> read_measured(const std::vector<std::string>& paths) {
  Reader reader;
  for (const std::string& path : paths) {
    std::ifstream file(path);
    if (!file) return Error{Code::invalid, path + ": cannot be read"};
    std::string text;
    for (int number = 1; std::getline(file, text); ++number) {
      if (!text.empty()) SL_TRY(reader.line(text, path + ":" + std::to_string(number)));
    }
  }
  return std::move(reader).done();
}

}  // namespace sl::tool
