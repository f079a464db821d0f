#include "tuner/results.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace sl::tool {
namespace {

using Json = RowFile::Json;

double finite(double value) { return std::isfinite(value) ? value : std::numeric_limits<double>::max(); }

}  // namespace

Result<RowFile> open_results(const std::filesystem::path& path, const ResultsHeader& header) {
  RowFile::Shape shape;
  shape.writer = "bench";
  shape.list = "rows";
  shape.key = "signature";
  shape.header = {{"gpu", header.gpu},
                  {"driver", header.driver},
                  {"commit", header.commit},
                  {"fma_per_s", header.peaks.fma},
                  {"mma_macs_per_s", header.peaks.mma}};
  shape.foreign = [header](const Json& there) -> std::string {
    for (const auto& [key, here] : {std::pair{"gpu", &header.gpu}, std::pair{"driver", &header.driver}}) {
      const std::string stands = there.at(key);
      if (stands != *here) return std::string(key) + " = \"" + stands + "\", but this machine has \"" + *here + "\"";
    }
    return {};
  };
  return RowFile::open(path, std::move(shape));
}

Json results_row(const ResultsRow& row) {
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

bool has_time(const RowFile& file, const ConvProblem& problem) {
  const Json* const row = file.find(problem.to_string());
  return row != nullptr && row->contains("time_us");
}

}  // namespace sl::tool
