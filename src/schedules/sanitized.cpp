#include "schedules/sanitized.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/embedded.hpp"
#include "core/json_reader.hpp"
#include "schedules/schedule.hpp"

namespace sl {
namespace {

constexpr std::int64_t schema_version = 1;

Result<SanitizedBuild> read_build(const JsonView& view) {
  JsonFields fields(view);
  SanitizedBuild build{fields.text("schedule"), fields.digest("digest")};
  SL_TRY(fields.finish());
  if (build.schedule.empty()) return view.error("schedule is \"\", a schedule's name would be right");
  return build;
}

Result<SanitizerRun> read_run(const JsonView& view) {
  JsonFields fields(view);
  SanitizerRun run;
  run.gpu = fields.text("gpu");
  run.driver = fields.text("driver");
  run.compiler = fields.text("compiler");
  run.commit = fields.text("commit");
  run.tools = fields.texts("tools");
  const auto passed = fields.value("passed", true);
  SL_TRY(fields.finish());
  for (const std::string_view tool : Sanitized::tools) {
    if (std::find(run.tools.begin(), run.tools.end(), tool) == run.tools.end())
      return view.error("tools lacks " + std::string(tool) + "; a run counts with memcheck, racecheck and initcheck");
  }
  SL_ASSIGN(const std::vector<JsonView> items, passed->items());
  for (const JsonView& item : items) {
    SL_ASSIGN(SanitizedBuild build, read_build(item));
    run.passed.push_back(std::move(build));
  }
  return run;
}

}  // namespace

Result<Sanitized> Sanitized::from_json(std::string_view text, std::string_view origin) {
  SL_ASSIGN(const nlohmann::json document, parse_json(text, origin));
  const JsonView root(document, origin);
  JsonFields fields(root);
  SL_TRY(fields.schema(schema_version));
  (void)fields.text("note", "");
  const auto runs = fields.value("runs", true);
  SL_TRY(fields.finish());
  SL_ASSIGN(const std::vector<JsonView> items, runs->items());
  Sanitized out;
  out.origin_ = origin;
  for (const JsonView& item : items) {
    SL_ASSIGN(SanitizerRun run, read_run(item));
    for (const SanitizedBuild& build : run.passed) {
      if (!out.builds_.emplace(build.schedule, build.digest).second)
        return item.error(build.schedule + " " + build.digest.hex() + " was there before; each build once");
    }
    out.runs_.push_back(std::move(run));
  }
  return out;
}

bool Sanitized::has(std::string_view schedule, const Digest& digest) const {
  return builds_.contains(std::pair(std::string(schedule), digest));
}

Result<std::shared_ptr<const Sanitized>> find_sanitized(const std::string& user) {
  if (user == "all") return std::shared_ptr<const Sanitized>();
  std::string text, origin = "embedded:sanitized";
  if (user.empty()) {
    for (const EmbeddedFile& file : embedded_sanitized_json()) text = file.content;
  } else {
    SL_ASSIGN(text, read_text_file(user));
    origin = user;
  }
  SL_ASSIGN(Sanitized list, Sanitized::from_json(text, origin));
  return std::shared_ptr<const Sanitized>(std::make_shared<Sanitized>(std::move(list)));
}

bool may_try(const Schedule& schedule, const DeviceInfo& device, const Sanitized* list) {
  return list == nullptr || device.backend == "host" || list->has(schedule.name, schedule.digest());
}

std::string untested_reason(const Schedule& schedule, const Sanitized& list) {
  return "build " + schedule.digest().hex() + " has not passed the sanitizers (" + list.origin() +
         "), so no process tries it on a GPU; `sluice tune --isolate` does, in a child";
}

}  // namespace sl
