#include "tuner/measured.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/json_reader.hpp"

namespace sl::tool {
namespace {

using Json = nlohmann::json;

std::string joined(const std::set<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

std::string version_of(const Json& number) {
  const int cudnn = number;
  return std::to_string(cudnn / 10000) + "." + std::to_string(cudnn / 100 % 100);
}

/// What the rivals of a file were: of compare_torch.py PyTorch's ways too, of `sluice bench` cuDNN alone.
std::string baseline_of(const Json& header) {
  if (header.contains("torch")) {
    return "fastest of cuDNN " + version_of(header.at("cudnn")) + " (every engine), PyTorch " +
           header.at("torch").get<std::string>() + " eager and native";
  }
  return "fastest engine of cuDNN " + version_of(header.at("cudnn"));
}

class Reader {
 public:
  /// A file of `sluice bench`: one object that holds its rows.
  Status whole(const Json& file, const std::string& path) {
    try {
      if (file.value("protocol", "cold") != "cold") {
        return Error{Code::invalid, path + ": protocol = " + file.at("protocol").dump() +
                                        ": a routing table is made from rows that were measured cold"};
      }
      if (!file.contains("capability")) {
        return Error{Code::invalid, path +
                                        ": no capability in the header: rows of an older `sluice bench`, which knew "
                                        "no rivals; measure them again"};
      }
      SL_TRY(header(file, path));
      std::size_t index = 0;
      for (const Json& row : file.at("rows")) SL_TRY(call(row, path + ", row " + std::to_string(index++)));
      return {};
    } catch (const Json::exception& error) {
      return Error{Code::invalid, path + ": " + error.what()};
    }
  }

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
    baselines_.insert(baseline_of(row));
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
    SL_ASSIGN(const std::string all, read_text_file(path));
    if (const Json whole = Json::parse(all, nullptr, false); whole.is_object() && whole.contains("rows")) {
      SL_TRY(reader.whole(whole, path));
      continue;
    }
    std::istringstream lines(all);
    std::string text;
    for (int number = 1; std::getline(lines, text); ++number) {
      if (!text.empty()) SL_TRY(reader.line(text, path + ":" + std::to_string(number)));
    }
  }
  return std::move(reader).done();
}

}  // namespace sl::tool
