// The host device without a compiler: memory, streams, recordings, refusals.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "device/host/sanitizers.hpp"
#include "jit/backends.hpp"

namespace sl::test {
namespace {

TEST(HostDevice, SaysWhatItIs) {
  const auto device = open_host_device({.capability = 80});
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.name, "host");
  EXPECT_EQ(info.backend, "host");
  EXPECT_EQ(info.capability, 80);
  EXPECT_GE(info.sm_count, 1);
  EXPECT_GE(info.smem_optin, 100 * 1024);
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_TRUE(device_supports(80, info));
  EXPECT_FALSE(device_supports(90, info));
  const auto memory = device->memory();
  ASSERT_TRUE(memory.ok());
  EXPECT_LE(memory->free_bytes, memory->total_bytes);
  EXPECT_GT(memory->free_bytes, 0U);
  EXPECT_FALSE(device->capturing(nullptr));
}

TEST(HostDevice, CopiesAndFills) {
  const auto device = open_host_device();
  const auto a = device->allocate(100), b = device->allocate(100);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*a)->data()) % 256, 0U);
  EXPECT_EQ((*a)->size(), 100U);
  const Stream stream = device->create_stream().value();
  for (const Stream s : {stream, Stream(nullptr)}) {
    const std::string text = s == nullptr ? "on no stream" : "on a stream!";
    ASSERT_TRUE(device->fill((*b)->data(), 0x5c, 100, s).ok());
    ASSERT_TRUE(device->copy_in((*a)->data(), text.data(), text.size(), s).ok());
    ASSERT_TRUE(device->copy((*b)->data(), (*a)->data(), text.size(), s).ok());
    std::string back(100, '\0');
    ASSERT_TRUE(device->copy_out(back.data(), (*b)->data(), 100, s).ok());
    EXPECT_EQ(back, text + std::string(100 - text.size(), '\\'));
    ASSERT_TRUE(device->synchronize(s).ok());
  }
  EXPECT_TRUE(device->copy_in(nullptr, nullptr, 0, nullptr).ok());
  EXPECT_EQ(device->copy_in(nullptr, "x", 1, nullptr).error().code, Code::invalid);
  device->destroy_stream(stream);
  EXPECT_EQ(device->synchronize(stream).error().code, Code::invalid) << "no stream any more";
}

TEST(HostDevice, AnEmptyBufferIsLegalAndTooLargeAOneIsOutOfMemory) {
  const auto device = open_host_device();
  EXPECT_TRUE(device->allocate(0).ok());
  for (const std::size_t bytes : {std::size_t{1} << 60, SIZE_MAX}) {
    const auto buffer = device->allocate(bytes);
    ASSERT_FALSE(buffer.ok());
    EXPECT_EQ(buffer.error().code, Code::out_of_memory);
    EXPECT_NE(buffer.error().message.find(std::to_string(bytes)), std::string::npos) << buffer.error().message;
  }
}

TEST(HostDevice, AWriteOutsideABufferIsLoggedWhenItIsFreed) {
  struct Case {
    std::ptrdiff_t at;
    const char* want;
  };
  const Case cases[] = {{10, "a buffer of 10 bytes was written at byte 10, 0 bytes past its end"},
                        {-3, "a buffer of 10 bytes was written at byte -3, 3 bytes before its start"},
                        {9, ""}};
  for (const Case& c : cases) {
    const auto run = [&] {
      std::vector<std::string> messages;
      const auto device = open_host_device({.log = [&](LogLevel level, std::string_view message) {
        EXPECT_EQ(level, LogLevel::error);
        messages.emplace_back(message);
      }});
      auto buffer = device->allocate(10).value();
      static_cast<volatile char*>(buffer->data())[c.at] = 1;
      buffer.reset();
      return messages;
    };
    if (asan::enabled && *c.want != '\0') {
      EXPECT_DEATH(run(), "use-after-poison");
      continue;
    }
    const std::vector<std::string> messages = run();
    ASSERT_EQ(messages.size(), *c.want != '\0' ? 1U : 0U);
    if (!messages.empty()) {
      EXPECT_NE(messages[0].find(c.want), std::string::npos) << messages[0];
    }
  }
}

TEST(HostDevice, RecordsCopiesAndRefusesWhatMustBeCompleteOnReturn) {
  const auto device = open_host_device();
  const Stream stream = device->create_stream().value();
  char from[4] = "abc", to[4] = "";
  auto recording = device->record(stream, [&](Stream s) -> Status {
    EXPECT_TRUE(device->capturing(s));
    EXPECT_EQ(device->synchronize(s).error().code, Code::invalid);
    EXPECT_EQ(device->copy_in(to, from, 4, s).error().code, Code::invalid);
    EXPECT_EQ(device->copy_out(to, from, 4, s).error().code, Code::invalid);
    EXPECT_EQ(device->record(s, [](Stream) { return Status{}; }).error().code, Code::invalid);
    return device->copy(to, from, 4, s);
  });
  ASSERT_TRUE(recording.ok()) << recording.error().message;
  EXPECT_STREQ(to, "");
  std::memcpy(from, "xyz", 4);
  ASSERT_TRUE((*recording)->replay().ok());
  EXPECT_STREQ(to, "xyz");

  const auto failed = device->record(stream, [](Stream) -> Status { return Error{Code::device, "on purpose"}; });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "on purpose");
  EXPECT_FALSE(device->capturing(stream)) << "a failed recording must end";
  device->destroy_stream(stream);
}

TEST(HostDevice, AnotherLibrarysCallIsRecordedAndReplayed) {
  const auto device = open_host_device();
  const Stream stream = device->create_stream().value();
  int calls = 0;
  const auto count = [&](Stream on) -> Status {
    EXPECT_EQ(on, stream);
    ++calls;
    return {};
  };
  ASSERT_TRUE(device->call(stream, count).ok());
  EXPECT_EQ(calls, 1) << "at once";
  const auto recording = device->record(stream, [&](Stream s) { return device->call(s, count); });
  ASSERT_TRUE(recording.ok()) << recording.error().message;
  EXPECT_EQ(calls, 1) << "not while it records";
  ASSERT_TRUE((*recording)->replay().ok() && (*recording)->replay().ok());
  EXPECT_EQ(calls, 3);
  device->destroy_stream(stream);
}

TEST(HostDevice, RefusesBinariesThatAreNotItsOwn) {
  const auto device = open_host_device();
  Binary cubin;
  cubin.entry = "k";
  cubin.arch = "sm_90";
  EXPECT_EQ(device->load(cubin, 0).error().code, Code::invalid);
  Binary text;
  text.format = Binary::Format::shared_object;
  text.code = std::string(5000, 'x');
  text.entry = "k";
  const auto refused = device->load(text, 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("no ELF file"), std::string::npos) << refused.error().message;
  EXPECT_EQ(device->load(text, 1 << 30).error().code, Code::invalid) << "more shared memory than there is";
  class Foreign : public Kernel {};
  EXPECT_EQ(device->launch(Foreign(), {1, 1, 0}, SlParams{}, nullptr).error().code, Code::invalid);
}

}  // namespace
}  // namespace sl::test
