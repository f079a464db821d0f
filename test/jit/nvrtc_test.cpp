// NVRTC itself: compiled for GPUs that are not here. Skipped with the reason where there is no toolkit.
#include "jit/nvrtc.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "jit/backends.hpp"
#include "jit/cubin.hpp"
#include "jit/host_kernels.hpp"

namespace sl {
namespace {

DeviceInfo gpu(int capability) {
  DeviceInfo info;
  info.name = "NVIDIA sm_" + std::to_string(capability);
  info.capability = capability;
  return info;
}

class Nvrtc : public testing::Test {
 protected:
  void SetUp() override {
    const auto environment = read_environment();
    ASSERT_TRUE(environment.ok()) << environment.error().message;
    compiler = make_nvrtc_compiler(*environment, log);
    if (!compiler->identity().available) GTEST_SKIP() << compiler->identity().why_not;
  }
  Log log;
  std::unique_ptr<Compiler> compiler;
};

TEST_F(Nvrtc, IdentityIsTheFileAndVersionOpensIt) {
  const CompilerIdentity identity = compiler->identity();
  EXPECT_NE(identity.text.find("path=" + identity.path), std::string::npos) << identity.text;
  EXPECT_NE(identity.text.find("size="), std::string::npos);
  EXPECT_NE(identity.text.find("mtime="), std::string::npos);
  const auto version = compiler->version();
  ASSERT_TRUE(version.ok()) << version.error().message;
  EXPECT_GE(std::stoi(*version), 12) << *version;
}

TEST_F(Nvrtc, BuiltinsAreOpenedFromBesideTheLibrary) {
  const auto library = open_nvrtc(compiler->identity().path);
  ASSERT_TRUE(library.ok()) << library.error().message;
  const auto folder = library->path.substr(0, library->path.rfind('/'));
  EXPECT_EQ(library->builtins.substr(0, library->builtins.rfind('/')), folder);
  EXPECT_NE(library->builtins.find("libnvrtc-builtins.so." + library->version_text()), std::string::npos)
      << library->builtins;
}

TEST_F(Nvrtc, CompilesForEachGpuIntoCodeWithItsResources) {
  const KernelSpec specs[] = {test::testing_kernel("decode", "memory"),
                              test::testing_kernel("overrun", "memory", {{"AT", 3}})};
  for (const int capability : {80, 90, 120}) {
    const auto arch = compiler->arch_for(gpu(capability));
    ASSERT_TRUE(arch.ok()) << arch.error().message;
    EXPECT_EQ(*arch, "sm_" + std::to_string(capability));
    const auto binaries = compiler->compile(specs, *arch, 2);
    ASSERT_EQ(binaries.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(binaries[i].ok()) << binaries[i].error().message;
      const Binary& binary = *binaries[i];
      EXPECT_EQ(binary.format, Binary::Format::cubin);
      EXPECT_EQ(binary.code.substr(0, 4),
                "\x7f"
                "ELF");
      EXPECT_EQ(binary.entry, specs[i].entry());
      EXPECT_EQ(binary.arch, *arch);
      EXPECT_NE(binary.compiler.find("nvrtc 1"), std::string::npos);
      EXPECT_NE(binary.code.find(specs[i].entry()), std::string::npos) << "the symbol is visible";
      EXPECT_GT(binary.registers, 0);
      EXPECT_EQ(binary.spill_bytes, 0);
      EXPECT_EQ(binary.static_smem > 0, i == 1) << binary.static_smem;
    }
  }
}

TEST_F(Nvrtc, ANewerGpuGetsPtxOfTheNewestKnownArch) {
  const auto arch = compiler->arch_for(gpu(999));
  ASSERT_TRUE(arch.ok()) << arch.error().message;
  EXPECT_EQ(arch->substr(0, 8), "compute_");
  const KernelSpec spec = test::testing_kernel("decode", "memory");
  const auto binaries = compiler->compile({&spec, 1}, *arch, 1);
  ASSERT_TRUE(binaries[0].ok()) << binaries[0].error().message;
  EXPECT_EQ(binaries[0]->format, Binary::Format::ptx);
  EXPECT_NE(binaries[0]->code.find(".target sm_" + arch->substr(8)), std::string::npos);
  EXPECT_NE(binaries[0]->code.find(spec.entry()), std::string::npos);
  EXPECT_NE(binaries[0]->code.back(), '\0');
}

TEST_F(Nvrtc, AGpuThatIsTooOldIsRefusedWithTheList) {
  const auto arch = compiler->arch_for(gpu(35));
  ASSERT_FALSE(arch.ok());
  EXPECT_EQ(arch.error().code, Code::unsupported);
  EXPECT_NE(arch.error().message.find("sm_80"), std::string::npos) << arch.error().message;
  EXPECT_NE(arch.error().message.find("not for sm_35"), std::string::npos) << arch.error().message;
}

TEST_F(Nvrtc, OtherBackendsAreRefused) {
  DeviceInfo rocm = gpu(0);
  rocm.backend = "rocm";
  EXPECT_EQ(compiler->arch_for(rocm).error().code, Code::unsupported);
}

TEST_F(Nvrtc, AFailureCarriesLogOptionsArchVersionAndPathAndHarmsNoOther) {
  const KernelSpec specs[] = {test::testing_kernel("broken", "memory", {{"BROKEN", 1}}),
                              test::testing_kernel("broken", "memory", {{"BROKEN", 0}})};
  const auto binaries = compiler->compile(specs, "sm_90", 2);
  ASSERT_FALSE(binaries[0].ok());
  EXPECT_TRUE(binaries[1].ok()) << binaries[1].error().message;
  const Error& error = binaries[0].error();
  EXPECT_EQ(error.code, Code::compile);
  for (const std::string& text :
       {std::string("broken on purpose"), std::string("--std=c++17"), std::string("--gpu-architecture=sm_90"),
        specs[0].entry(), *compiler->version(), compiler->identity().path})
    EXPECT_NE(error.message.find(text), std::string::npos) << "no '" << text << "' in: " << error.message;
}

TEST_F(Nvrtc, OptionsThatAnOlderOneDoesNotKnowAreNotGiven) {
  auto library = open_nvrtc(compiler->identity().path);
  ASSERT_TRUE(library.ok()) << library.error().message;
  library->major = 12;
  for (const int minor : {3, 4}) {
    library->minor = minor;
    const auto binary = nvrtc_compile(*library, "#error on purpose", "none", "sm_90");
    ASSERT_FALSE(binary.ok());
    EXPECT_EQ(binary.error().message.find("-minimal") != std::string::npos, minor == 4) << binary.error().message;
    EXPECT_NE(binary.error().message.find("--ptxas-options=-v"), std::string::npos) << binary.error().message;
  }
}

TEST_F(Nvrtc, AnArchThatItDoesNotKnowIsAnErrorNotACrash) {
  const KernelSpec spec = test::testing_kernel("decode", "memory");
  const auto binaries = compiler->compile({&spec, 1}, "sm_1", 1);
  ASSERT_FALSE(binaries[0].ok());
  EXPECT_NE(binaries[0].error().message.find("sm_1"), std::string::npos) << binaries[0].error().message;
}

TEST(NvrtcLog, SpillsAreThoseOfTheKernel) {
  const std::string log =
      "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'other' for 'sm_90'\n"
      "ptxas info    : Function properties for other\n    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill "
      "loads\n"
      "ptxas info    : Used 32 registers\nptxas info    : Compiling entry function 'k' for 'sm_90'\n"
      "ptxas info    : Function properties for k\n    24 bytes stack frame, 20 bytes spill stores, 36 bytes spill "
      "loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 6144 bytes smem, 712 bytes cmem[0]\n";
  EXPECT_EQ(spilled(log, "k"), 36);
  EXPECT_EQ(spilled(log, "other"), 8);
  EXPECT_EQ(spilled(log, "oth"), std::nullopt);
  EXPECT_EQ(spilled("", "k"), std::nullopt);
  EXPECT_EQ(spilled("ptxas info    : Function properties for k\n", "k"), std::nullopt);
}

// What a kernel takes is read from its cubin: as ptxas says, wherever its log is there.
TEST_F(Nvrtc, ResourcesAreThoseOfTheCubin) {
  auto library = open_nvrtc(compiler->identity().path);
  ASSERT_TRUE(library.ok()) << library.error().message;
  const std::string source = R"(
extern "C" __global__ void plain(float* p) { p[threadIdx.x] += 1.0F; }
extern "C" __global__ void __launch_bounds__(1024, 2) tight(const float* x, float* y, int n) {
  __shared__ float tile[1234];
  float a[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) a[i] = x[i * n + threadIdx.x];
  tile[threadIdx.x] = a[0];
  __syncthreads();
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int i = 0; i < 64; ++i) a[i] = a[i] * tile[j] + a[(i + 1) % 64];
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) y[i * n + threadIdx.x] = a[i];
})";
  for (const char* const arch : {"sm_80", "sm_90", "sm_120"}) {
    const auto plain = nvrtc_compile(*library, source, "plain", arch);
    const auto tight = nvrtc_compile(*library, source, "tight", arch);
    ASSERT_TRUE(plain.ok() && tight.ok()) << arch;
    EXPECT_GT(plain->registers, 4) << arch;
    EXPECT_LT(plain->registers, 32) << arch;
    EXPECT_EQ(plain->static_smem + plain->spill_bytes, 0) << arch;
    EXPECT_TRUE(tight->registers == 32 || tight->registers == 64)
        << arch << " " << tight->registers;  // sm_120: one block
    EXPECT_EQ(tight->static_smem, 4 * 1234) << arch;
    EXPECT_GE(tight->spill_bytes, 100) << arch;
    EXPECT_GE(cubin_resources(tight->code, "tight").stack, 100) << arch;  // where there is no log
    EXPECT_EQ(cubin_resources(plain->code, "plain").stack, 0) << arch;
    EXPECT_EQ(cubin_resources(plain->code, "absent").registers, 0) << arch;
  }
}

TEST_F(Nvrtc, ADamagedCubinSaysLessAndHarmsNothing) {
  const KernelSpec spec = test::testing_kernel("decode", "memory");
  const auto binaries = compiler->compile({&spec, 1}, "sm_90", 1);
  ASSERT_TRUE(binaries[0].ok()) << binaries[0].error().message;
  const std::string& code = binaries[0]->code;
  EXPECT_GT(cubin_resources(code, spec.entry()).registers, 0);
  EXPECT_EQ(cubin_resources("", spec.entry()).registers, 0);
  EXPECT_EQ(cubin_resources("not a cubin", spec.entry()).registers, 0);
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::unique_ptr<char[]> exact(new char[code.size()]);  // so that the address sanitizer sees its end
    std::copy(code.begin(), code.end(), exact.get());
    const std::size_t size = i % 2 == 0 ? random() % code.size() : code.size();
    for (int hits = i % 2 == 0 ? 0 : 8; hits > 0; --hits) {  // among the headers half of the time
      const std::size_t table = code.size() > 4096 ? code.size() - random() % 4096 - 1 : random() % code.size();
      exact[hits % 2 == 0 ? table : random() % 64] = static_cast<char>(random());
    }
    const std::unique_ptr<char[]> cut(new char[size + 1]);
    std::copy(exact.get(), exact.get() + size, cut.get());
    cubin_resources({cut.get(), size}, spec.entry());
  }
}

}  // namespace
}  // namespace sl
