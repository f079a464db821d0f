// Memory, loading and recording on the fake driver, with each call made to fail in turn.
#include "device/cuda/driver_api.hpp"
#include "test/device/cuda_fixture.hpp"

namespace sl {
namespace {

void expect_says(const Error& error, const std::vector<std::string>& texts) {
  for (const std::string& text : texts)
    EXPECT_NE(error.message.find(text), std::string::npos) << "no '" << text << "' in: " << error.message;
}

TEST_F(FakeCuda, OutOfMemoryIsACodeOfItsOwn) {
  const auto device = open();
  const auto buffer = device->allocate(std::size_t{1} << 50);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.error().code, Code::out_of_memory);
  expect_says(buffer.error(), {"cuMemAlloc", "1125899906842624 bytes", "cuda:0", "CUDA_ERROR_OUT_OF_MEMORY"});
  const auto use = device->memory();
  ASSERT_TRUE(use.ok());
  EXPECT_EQ(use->free_bytes, use->total_bytes);
}

TEST_F(FakeCuda, AnEmptyBufferAndAnEmptyCopyAreNothing) {
  const auto device = open();
  const auto buffer = device->allocate(0);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ((*buffer)->size(), 0U);
  EXPECT_TRUE(device->copy_in(nullptr, nullptr, 0, nullptr).ok());
  EXPECT_TRUE(device->copy_out(nullptr, nullptr, 0, nullptr).ok());
  EXPECT_TRUE(device->copy(nullptr, nullptr, 0, nullptr).ok());
  EXPECT_TRUE(device->fill(nullptr, 0, 0, nullptr).ok());
}

TEST_F(FakeCuda, CopiesAreCompleteAndInOrder) {
  const auto device = open();
  const auto a = device->allocate(4), b = device->allocate(4);
  ASSERT_TRUE(a.ok() && b.ok());
  const char in[4] = {1, 2, 3, 4};
  char out[4] = {};
  ASSERT_TRUE(device->copy_in((*a)->data(), in, 4, nullptr).ok());
  ASSERT_TRUE(device->copy((*b)->data(), (*a)->data(), 4, nullptr).ok());
  ASSERT_TRUE(device->copy_out(out, (*b)->data(), 4, nullptr).ok());
  EXPECT_EQ(std::string(out, 4), std::string(in, 4));
  EXPECT_EQ(control.fake_calls("cuStreamSynchronize"), 2);
}

TEST_F(FakeCuda, EachFailingCallIsNamed) {
  const auto device = open();
  const auto buffer = device->allocate(8);
  ASSERT_TRUE(buffer.ok());
  void* const data = (*buffer)->data();
  char host[8] = {};
  const std::vector<std::pair<const char*, std::function<Status()>>> calls = {
      {"cuMemcpyHtoDAsync_v2", [&] { return device->copy_in(data, host, 8, nullptr); }},
      {"cuMemcpyDtoHAsync_v2", [&] { return device->copy_out(host, data, 8, nullptr); }},
      {"cuMemcpyDtoDAsync_v2", [&] { return device->copy(data, data, 8, nullptr); }},
      {"cuMemsetD8Async", [&] { return device->fill(data, 0, 8, nullptr); }},
      {"cuStreamSynchronize", [&] { return device->synchronize(nullptr); }},
  };
  for (const auto& [symbol, call] : calls) {
    SCOPED_TRACE(symbol);
    control.fake_fault(symbol, cuda::cuda_illegal_address, 1);
    const Status status = call();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::device);
    expect_says(status.error(), {std::string(symbol).substr(0, std::string(symbol).find("_v2")), "cuda:0",
                                 "CUDA_ERROR_ILLEGAL_ADDRESS", "fake text", "cannot be used any more"});
    EXPECT_TRUE(call().ok()) << "the next call is served";
  }
}

TEST_F(FakeCuda, LoadingForcesTheCodeInAndOptsInToSharedMemory) {
  const auto device = open();
  const auto small = device->load(tiny_cubin(), 1000);
  ASSERT_TRUE(small.ok()) << small.error().message;
  EXPECT_EQ(control.fake_calls("cuFuncLoad"), 1) << "lazy loading would load at the first launch";
  EXPECT_EQ(control.fake_calls("cuFuncSetAttribute"), 0);
  const auto large = device->load(tiny_cubin(), 48 << 10);  // with the 1 KiB of static memory beyond the default
  ASSERT_TRUE(large.ok()) << large.error().message;
  EXPECT_EQ(control.fake_calls("cuFuncSetAttribute"), 1);
}

TEST_F(FakeCuda, RefusedLoadsSayWhyAndLeaveNothing) {
  const auto device = open();
  Binary ptx = tiny_cubin();
  ptx.format = Binary::Format::ptx;
  ptx.arch = "compute_121";
  const struct {
    const char* symbol;
    int result;
    std::vector<std::string> says;
  } faults[] = {
      {"cuModuleLoadDataEx", 222, {"sluice_test", "compute_121", "newer than the driver (CUDA 13.0)", "SLUICE_NVRTC"}},
      {"cuModuleLoadDataEx", 209, {"another architecture", "ptxas said so"}},
      {"cuModuleLoadDataEx", 2, {"CUDA_ERROR_OUT_OF_MEMORY"}},
      {"cuModuleGetFunction", 500, {"cuModuleGetFunction", "sluice_test", "CUDA_ERROR_NOT_FOUND"}},
      {"cuFuncLoad", 2, {"cuFuncLoad", "sluice_test"}},
      {"cuFuncGetAttribute", 201, {"cuFuncGetAttribute"}},
  };
  for (const auto& fault : faults) {
    SCOPED_TRACE(fault.symbol);
    control.fake_log("ptxas said so");
    control.fake_fault(fault.symbol, fault.result, 1);
    const auto kernel = device->load(ptx, 0);
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().code, fault.result == 2 ? Code::out_of_memory : Code::device);
    expect_says(kernel.error(), fault.says);
    EXPECT_EQ(control.live().modules, 0);
  }
}

TEST_F(FakeCuda, TruncatedAndForeignBinariesNeverReachTheDriver) {
  const auto device = open();
  const Binary whole = tiny_cubin();
  for (std::size_t bytes = 0; bytes < whole.code.size(); ++bytes) {
    Binary cut = whole;
    cut.code.resize(bytes);
    const auto kernel = device->load(cut, 0);
    ASSERT_FALSE(kernel.ok()) << bytes << " bytes";
    expect_says(kernel.error(), {"truncated or not an ELF file", "sluice_test"});
  }
  Binary section_outside = whole;
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = whole.code.size();
  section.sh_size = 1;
  std::memcpy(section_outside.code.data() + sizeof(Elf64_Ehdr), &section, sizeof section);
  EXPECT_FALSE(device->load(section_outside, 0).ok());
  Binary host = whole;
  host.format = Binary::Format::shared_object;
  EXPECT_EQ(device->load(host, 0).error().code, Code::invalid);
  EXPECT_EQ(control.fake_calls("cuModuleLoadDataEx"), 0);
}

TEST_F(FakeCuda, TooMuchSharedMemoryIsRefusedWithTheLimit) {
  const auto device = open();
  const auto kernel = device->load(tiny_cubin(), 227 << 10);  // plus 1 KiB static
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().code, Code::invalid);
  expect_says(kernel.error(), {"232448", "1024", "NVIDIA Fake 100 has 232448"});
  EXPECT_FALSE(device->load(tiny_cubin(), -1).ok());
}

TEST_F(FakeCuda, ARecordingReplaysAndTellsTheTime) {
  const auto device = open();
  const auto stream = device->create_stream();
  ASSERT_TRUE(stream.ok());
  for (const Stream on : {Stream{nullptr}, *stream}) {
    Stream seen = nullptr;
    const auto recording = device->record(on, [&](Stream inner) -> Status {
      seen = inner;
      EXPECT_TRUE(device->capturing(inner));
      return {};
    });
    ASSERT_TRUE(recording.ok()) << recording.error().message;
    EXPECT_NE(seen, nullptr) << "the legacy default stream cannot be captured";
    EXPECT_TRUE(on == nullptr || seen == on);
    const auto microseconds = (*recording)->replay();
    ASSERT_TRUE(microseconds.ok()) << microseconds.error().message;
    EXPECT_DOUBLE_EQ(*microseconds, 250.0);
  }
  EXPECT_EQ(control.fake_calls("cuGraphUpload"), 2);
  device->destroy_stream(*stream);
}

TEST_F(FakeCuda, AnotherLibraryIsCalledWithTheContextCurrent) {
  const auto device = open();
  const int before = control.fake_context_depth();
  int inside = 0;
  const Status called = device->call(nullptr, [&](Stream) -> Status {
    inside = control.fake_context_depth();
    return Error{Code::unsupported, "its own words"};
  });
  EXPECT_EQ(inside, before + 1);
  EXPECT_EQ(control.fake_context_depth(), before);
  ASSERT_FALSE(called.ok());
  EXPECT_EQ(called.error().message, "its own words");
}

TEST_F(FakeCuda, AFailingBodyEndsTheCapture) {
  const auto device = open();
  const auto failed = device->record(nullptr, [](Stream) -> Status { return Error{Code::invalid, "body said no"}; });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "body said no");
  EXPECT_EQ(control.live().captures, 0);
  EXPECT_THROW((void)device->record(nullptr, [](Stream) -> Status { throw std::runtime_error("thrown"); }),
               std::runtime_error);
  EXPECT_EQ(control.live(), (fake::Live{.retains = 1}));
}

TEST_F(FakeCuda, EachFailingStepOfARecordingIsNamedAndLeavesNothing) {
  const auto device = open();
  const fake::Live before = control.live();
  const auto body = [](Stream) -> Status { return {}; };
  for (const char* const symbol : {"cuStreamCreate", "cuEventCreate", "cuStreamBeginCapture_v2", "cuStreamEndCapture",
                                   "cuGraphInstantiateWithFlags", "cuGraphUpload"}) {
    SCOPED_TRACE(symbol);
    control.fake_fault(symbol, 2, 1);
    const auto recording = device->record(nullptr, body);
    ASSERT_FALSE(recording.ok());
    EXPECT_EQ(recording.error().code, Code::out_of_memory);
    expect_says(recording.error(), {std::string(symbol).substr(0, 12), "cuda:0"});
    EXPECT_EQ(control.live(), before);
  }
  const auto recording = device->record(nullptr, body);
  ASSERT_TRUE(recording.ok()) << recording.error().message;
  for (const char* const symbol : {"cuEventRecord", "cuGraphLaunch", "cuEventSynchronize", "cuEventElapsedTime"}) {
    SCOPED_TRACE(symbol);
    control.fake_fault(symbol, 700, 1);
    const auto time = (*recording)->replay();
    ASSERT_FALSE(time.ok());
    expect_says(time.error(), {symbol});
  }
}

TEST_F(FakeCuda, AStreamThatCapturesAlreadyIsRefused) {
  const auto device = open();
  const auto outer = device->record(nullptr, [&](Stream stream) -> Status {
    const auto inner = device->record(stream, [](Stream) -> Status { return {}; });
    EXPECT_FALSE(inner.ok());
    expect_says(inner.error(), {"cuStreamBeginCapture", "CUDA_ERROR_ILLEGAL_STATE"});
    return {};
  });
  EXPECT_TRUE(outer.ok()) << outer.error().message << ": the outer capture stays valid";
}

}  // namespace
}  // namespace sl
