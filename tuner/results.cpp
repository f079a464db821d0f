#include "tuner/results.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

namespace sl::tool {
namespace {

using Json = nlohmann::ordered_json;

std::filesystem::path part_of(const std::filesystem::path& path) { return path.string() + ".part"; }

double finite(double value) { return std::isfinite(value) ? value : std::numeric_limits<double>::max(); }

Json to_json(const ResultsHeader& header) {
  return {{"gpu", header.gpu},
          {"driver", header.driver},
          {"commit", header.commit},
          {"fma_per_s", header.peaks.fma},
          {"mma_macs_per_s", header.peaks.mma}};
}

Json to_json(const ResultsRow& row) {
  Json out = {{"problem", row.problem.descriptor()},
              {"dtype", name(row.problem.dtype)},
              {"layout", name(row.problem.layout)},
              {"signature", row.problem.to_string()}};
  if (!row.error.empty()) {
    out["error"] = row.error;
    return out;
  }
  out["time_us"] = row.time_us;
  out["spread_us"] = {row.low_us, row.high_us};
  out["copy_us"] = row.copy_us;
  out["floor_us"] = row.floor_us;
  out["schedule"] = row.schedule;
  out["config"] = row.config;
  out["error_over_bound"] = finite(row.error_over_bound);
  out["registers"] = row.registers;
  out["smem"] = row.smem;
  return out;
}

Error foreign(const std::filesystem::path& path, const std::string& why) {
  return {Code::invalid, path.string() + ": " + why + "; name another --out, or remove it"};
}

/// Throws nlohmann's exceptions, caught where the file is read.
std::optional<Error> mismatch(const std::filesystem::path& path, const Json& there, const ResultsHeader& header) {
  const std::string gpu = there.at("gpu"), driver = there.at("driver");
  if (gpu != header.gpu) return foreign(path, "gpu = \"" + gpu + "\", but this machine has " + header.gpu);
  if (driver != header.driver) {
    return foreign(path, "driver = \"" + driver + "\", but this machine has " + header.driver);
  }
  return std::nullopt;
}

}  // namespace

Result<Results> Results::open(const std::filesystem::path& path, const ResultsHeader& header) {
  Results results;
  results.path_ = path;
  results.header_ = header;
  const auto take = [&results](const Json& row) { results.rows_[row.at("signature").get<std::string>()] = row.dump(); };
  std::filesystem::path reading = path;
  try {
    if (std::ifstream whole(path); whole) {
      const Json there = Json::parse(whole);
      if (auto error = mismatch(path, there, header)) return *std::move(error);
      for (const Json& row : there.at("rows")) take(row);
    }
    reading = part_of(path);
    std::ifstream part(reading);
    std::string line;
    if (part && std::getline(part, line)) {
      if (auto error = mismatch(reading, Json::parse(line), header)) return *std::move(error);
      while (std::getline(part, line)) {
        const Json row = Json::parse(line, nullptr, false);
        if (row.is_discarded()) break;  // a kill cut the last line short
        take(row);
      }
    }
  } catch (const Json::exception& error) {
    return foreign(reading, std::string("not a file of `sluice bench`: ") + error.what());
  }
  return results;
}

bool Results::has(const ConvProblem& problem) const {
  const auto found = rows_.find(problem.to_string());
  return found != rows_.end() && found->second.find("\"time_us\"") != std::string::npos;
}

Status Results::add(const ResultsRow& row) {
  const std::filesystem::path part = part_of(path_);
  std::error_code ignored;
  const bool fresh = !std::filesystem::exists(part, ignored);
  const std::string line = to_json(row).dump();
  std::ofstream file(part, std::ios::app);
  if (fresh) file << to_json(header_).dump() << '\n';
  file << line << '\n';
  file.flush();
  if (!file) return Error{Code::environment, part.string() + ": cannot be written"};
  rows_[row.problem.to_string()] = line;
  return {};
}

Status Results::finish() {
  const std::filesystem::path whole = path_, next = path_.string() + ".next";
  {
    std::ofstream file(next, std::ios::trunc);
    std::string head = to_json(header_).dump();
    head.back() = ',';
    file << head << "\n\"rows\": [";
    bool first = true;
    for (const auto& [signature, row] : rows_) file << (std::exchange(first, false) ? "\n" : ",\n") << row;
    file << "\n]}\n";
    file.flush();
    if (!file) return Error{Code::environment, next.string() + ": cannot be written"};
  }
  std::error_code failed;
  std::filesystem::rename(next, whole, failed);
  if (failed) return Error{Code::environment, whole.string() + ": " + failed.message()};
  std::filesystem::remove(part_of(path_), failed);
  return {};
}

}  // namespace sl::tool
