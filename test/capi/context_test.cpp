// Contexts, options, versioned structs, last errors.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "capi/call_builder.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

/// An environment variable for one scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

sluice_status create(sluice_options options, std::string& message) {
  sluice_context* context = reinterpret_cast<sluice_context*>(1);
  const sluice_status status = sluice_context_create(&options, &context);
  message = status == SLUICE_OK ? "" : sluice_last_error();
  EXPECT_EQ(context == nullptr, status != SLUICE_OK);
  if (status == SLUICE_OK) sluice_context_destroy(context);
  return status;
}

sluice_options host_options() {
  sluice_options options = SLUICE_OPTIONS_INIT;
  options.device = "host";
  options.cache_dir = "off";
  return options;
}

TEST(Context, ANewOneHasCountedNothing) {
  const HostContext context;
  const sluice_counters counters = context.counters();
  EXPECT_EQ(counters.launches + counters.compiles + counters.tunings + counters.kept + counters.plan_misses, 0u);
  EXPECT_EQ(sluice_wait_idle(context), SLUICE_OK);
  EXPECT_EQ(sluice_device_supports(context, 80), 1);
  EXPECT_EQ(sluice_device_supports(context, 120), 0);
}

TEST(Context, TheHostEmulatesACapability) {
  sluice_options options = host_options();
  options.device = "host:80";
  sluice_context* context = nullptr;
  ASSERT_EQ(sluice_context_create(&options, &context), SLUICE_OK) << sluice_last_error();
  EXPECT_EQ(sluice_device_supports(context, 80), 1);
  EXPECT_EQ(sluice_device_supports(context, 90), 0);
  sluice_context_destroy(context);
}

TEST(Context, WrongOptionsNameTheFieldAndWhatIsRight) {
  struct Case {
    void (*spoil)(sluice_options&);
    std::vector<const char*> says;
  };
  const Case cases[] = {
      {[](sluice_options& o) { o.device = "gpu"; }, {"\"gpu\"", "cuda, cuda:N, host"}},
      {[](sluice_options& o) { o.device = "cuda:x"; }, {"cuda:x", "whole number"}},
      {[](sluice_options& o) { o.device = "cuda:-1"; }, {"cuda:-1", "whole number"}},
      {[](sluice_options& o) { o.device = "host:9"; }, {"host:9", "from 50"}},
      {[](sluice_options& o) { o.policy = 5; }, {"policy = 5", "sluice_policy"}},
      {[](sluice_options& o) { o.policy = SLUICE_PINNED; }, {"pinned", "decision table"}},
      {[](sluice_options& o) { o.tune_budget_ms = -1; }, {"tune_budget_ms = -1"}},
      {[](sluice_options& o) { o.tune_threads = -2; }, {"tune_threads = -2"}},
      {[](sluice_options& o) { o.force_take = 7; }, {"force_take = 7"}},
      {[](sluice_options& o) { o.log_level = 9; }, {"log_level = 9"}},
      {[](sluice_options& o) { o.pinned_accepts = 3; }, {"pinned_accepts = 3"}},
      {[](sluice_options& o) { o.size = 4; }, {"sluice_options.size = 4", "sizeof"}},
  };
  for (const Case& row : cases) {
    sluice_options options = host_options();
    row.spoil(options);
    std::string message;
    EXPECT_EQ(create(options, message), SLUICE_INVALID) << row.says.front();
    for (const char* part : row.says) EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(Context, MissingFilesAndDevicesAreClearErrors) {
  sluice_options options = host_options();
  std::string message;
  options.routing_table = "/nowhere/table.json";
  EXPECT_NE(create(options, message), SLUICE_OK);
  EXPECT_NE(message.find("/nowhere/table.json"), std::string::npos) << message;
  options = host_options();
  options.heuristic = "/nowhere/model.json";
  EXPECT_NE(create(options, message), SLUICE_OK);
  EXPECT_NE(message.find("/nowhere/model.json"), std::string::npos) << message;
  options = host_options();
  options.decision_table = "/nowhere/decisions.json";
  EXPECT_NE(create(options, message), SLUICE_OK);
  EXPECT_NE(message.find("/nowhere/decisions.json"), std::string::npos) << message;
  options = host_options();
  const Variable no_driver("SLUICE_LIBCUDA", "/nowhere/libcuda.so.1");
  options.device = "cuda";
  EXPECT_EQ(create(options, message), SLUICE_ENVIRONMENT);
  EXPECT_NE(message.find("/nowhere/libcuda.so.1"), std::string::npos) << message;
}

// What has not passed the sanitizers is tried by no process on a GPU, whoever the process is.
TEST(Context, OnAGpuOnlyWhatPassedTheSanitizersIsTried) {
  const Variable driver("SLUICE_LIBCUDA", FAKE_CUDA);
  const TempDir folder;
  const std::string path = (folder / "list.json").string();
  write_file(path, R"({"schema": 1, "runs": []})");
  sluice_options options = host_options();
  options.device = "cuda:0";
  options.policy = SLUICE_IMMEDIATE;
  options.force_take = 1;
  CallBuilder call;
  const auto record = [&] {
    sluice_context* context = nullptr;
    EXPECT_EQ(sluice_context_create(&options, &context), SLUICE_OK) << sluice_last_error();
    std::string text = context == nullptr ? "" : explained(context, call.args);
    sluice_context_destroy(context);
    return text;
  };
  {
    const Variable list("SLUICE_SANITIZED", path.c_str());
    const std::string kept = record();
    EXPECT_NE(kept.find(R"("route":"keep")"), std::string::npos) << kept;
    EXPECT_NE(kept.find("sluice tune --isolate"), std::string::npos) << kept;
    options.device = "host";
    EXPECT_NE(record().find(R"("route":"take")"), std::string::npos) << "the host device has sanitizers of its own";
    options.device = "cuda:0";
  }
  {
    const Variable all("SLUICE_SANITIZED", "all");
    EXPECT_NE(record().find(R"("route":"take")"), std::string::npos);
  }
  const Variable missing("SLUICE_SANITIZED", "/nowhere/list.json");
  std::string message;
  EXPECT_EQ(create(options, message), SLUICE_ENVIRONMENT);
  EXPECT_NE(message.find("/nowhere/list.json"), std::string::npos) << message;
}

TEST(Context, TheEnvironmentIsReadAndOptionsWin) {
  std::string message;
  {
    const Variable policy("SLUICE_POLICY", "pinned");
    EXPECT_EQ(create(host_options(), message), SLUICE_INVALID);
    sluice_options options = host_options();
    options.policy = SLUICE_OFF;
    EXPECT_EQ(create(options, message), SLUICE_OK) << message;
  }
  {
    const Variable schedule("SLUICE_FORCE_SCHEDULE", "dw_flatt");
    EXPECT_EQ(create(host_options(), message), SLUICE_INVALID);
    EXPECT_NE(message.find("dw_flatt"), std::string::npos) << message;
    EXPECT_NE(message.find("dw_flat,"), std::string::npos) << message;
  }
  const Variable off("SLUICE_DISABLE", "1");
  const HostContext context;
  CallBuilder call;
  EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_KEPT);
  EXPECT_NE(std::string(sluice_last_error()).find("SLUICE_DISABLE"), std::string::npos) << sluice_last_error();
}

TEST(Context, OffNeedsNoDeviceTableOrCompiler) {
  const Variable no_driver("SLUICE_LIBCUDA", "/nowhere/libcuda.so.1");
  const Variable no_table("SLUICE_ROUTING_TABLE", "/nowhere/table.json");
  const Variable no_decisions("SLUICE_DECISION_TABLE", "/nowhere/decisions.json");
  for (const bool disabled : {true, false}) {
    if (disabled) setenv("SLUICE_DISABLE", "1", 1);
    sluice_options options = host_options();
    options.device = "cuda";
    options.policy = disabled ? SLUICE_FIRST_USE : SLUICE_OFF;
    sluice_context* context = nullptr;
    EXPECT_EQ(sluice_context_create(&options, &context), SLUICE_OK) << sluice_last_error();
    unsetenv("SLUICE_DISABLE");
    ASSERT_NE(context, nullptr);
    CallBuilder call;
    EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_KEPT) << sluice_last_error();
    EXPECT_NE(std::string(sluice_last_error()).find(disabled ? "SLUICE_DISABLE" : "policy off"), std::string::npos)
        << sluice_last_error();
    call.args.regular = 0;
    EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_UNSUPPORTED) << sluice_last_error();
    EXPECT_EQ(sluice_device_supports(context, 50), 0);
    sluice_context_destroy(context);
  }
}

TEST(Versions, AnOlderCallersStructsKeepDefaults) {
  sluice_options options = host_options();
  options.pinned_accepts = 99;  // beyond what the older struct has: must not be read
  options.size = offsetof(sluice_options, pinned_accepts);
  std::string message;
  EXPECT_EQ(create(options, message), SLUICE_OK) << message;

  const HostContext context(SLUICE_OFF);
  CallBuilder call;
  call.args.regular = 99;
  call.args.size = offsetof(sluice_conv2d_args, regular);
  EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_KEPT) << sluice_last_error();

  sluice_counters counters = SLUICE_COUNTERS_INIT;
  counters.size = offsetof(sluice_counters, fallbacks);
  counters.plan_misses = 4711;
  EXPECT_EQ(sluice_get_counters(context, &counters), SLUICE_OK);
  EXPECT_EQ(counters.kept, 1u);
  EXPECT_EQ(counters.plan_misses, 4711u) << "written beyond the caller's struct";
}

TEST(Versions, ANewerCallersTailMustBeZero) {
  struct Newer {
    sluice_options known = host_options();
    std::int64_t unknown = 0;
  } options;
  options.known.size = sizeof(options);
  sluice_context* context = nullptr;
  EXPECT_EQ(sluice_context_create(&options.known, &context), SLUICE_OK) << sluice_last_error();
  sluice_context_destroy(context);
  options.unknown = 1;
  EXPECT_EQ(sluice_context_create(&options.known, &context), SLUICE_INVALID);
  EXPECT_NE(std::string(sluice_last_error()).find("unknown fields must be zero"), std::string::npos);
}

// Garbage in `size` must not make the library read through memory for a byte that is set.
TEST(Versions, ASizeThatNoVersionHasIsRefusedUnread) {
  for (const std::size_t beyond : {std::size_t{1025}, std::size_t{1} << 40, ~std::size_t{0} - sizeof(sluice_options)}) {
    sluice_options options = host_options();
    options.size = sizeof(options) + beyond;
    sluice_context* context = nullptr;
    EXPECT_EQ(sluice_context_create(&options, &context), SLUICE_INVALID);
    EXPECT_NE(std::string(sluice_last_error()).find("sluice_options.size = "), std::string::npos);
    EXPECT_NE(std::string(sluice_last_error()).find("must be at most "), std::string::npos) << sluice_last_error();
  }
  const HostContext context(SLUICE_OFF);
  CallBuilder call;
  call.args.size = sizeof(call.args) + 4096;
  EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_INVALID);
  EXPECT_NE(std::string(sluice_last_error()).find("must be at most "), std::string::npos) << sluice_last_error();
}

TEST(LastError, IsTheThreadsOwn) {
  const HostContext context;
  CallBuilder call;
  EXPECT_EQ(sluice_conv2d(nullptr, &call.args, nullptr), SLUICE_INVALID);
  const std::string mine = sluice_last_error();
  std::thread([&] {
    EXPECT_STREQ(sluice_last_error(), "");
    EXPECT_EQ(sluice_conv2d(context, nullptr, nullptr), SLUICE_INVALID);
    EXPECT_NE(mine, sluice_last_error());
  }).join();
  EXPECT_EQ(mine, sluice_last_error());
}

TEST(Version, NumberAndTextAgree) {
  EXPECT_EQ(sluice_version(), SLUICE_VERSION_MAJOR * 10000 + SLUICE_VERSION_MINOR * 100 + SLUICE_VERSION_PATCH);
  EXPECT_EQ(sluice_version_string(), std::to_string(SLUICE_VERSION_MAJOR) + "." + std::to_string(SLUICE_VERSION_MINOR) +
                                         "." + std::to_string(SLUICE_VERSION_PATCH));
  for (int status = SLUICE_OK; status <= SLUICE_INTERNAL; ++status) {
    EXPECT_STRNE(sluice_status_name(static_cast<sluice_status>(status)), "UNKNOWN") << status;
  }
}

}  // namespace
}  // namespace sl::test
