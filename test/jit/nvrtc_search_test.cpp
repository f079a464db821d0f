// The search for libnvrtc, in folders made for it: the order, and that nothing is opened.
#include "jit/nvrtc_search.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "jit/backends.hpp"
#include "jit/nvrtc_library.hpp"
#include "support/temp_dir.hpp"

namespace sl {
namespace {

namespace fs = std::filesystem;

class NvrtcSearch : public testing::Test {
 protected:
  /// A file that is no library: found, if the search only looks.
  std::string make(const fs::path& relative) {
    const fs::path path = root / relative;
    fs::create_directories(path.parent_path());
    test::write_file(path, "not a library");
    return path.string();
  }
  NvrtcLocation find() { return find_nvrtc(environment, host); }

  test::TempDir temporary;
  const fs::path root = fs::canonical(temporary.path());
  Environment environment;
  NvrtcSearchHost host{(root / "maps").string(), (root / "ld.so.cache").string(), (root / "usr_local").string(), false};
};

TEST_F(NvrtcSearch, NothingFoundNamesEveryPlace) {
  environment.cuda_home = (root / "cuda_home").string();
  environment.home = root.string();
  const NvrtcLocation location = find();
  EXPECT_EQ(location.path, "");
  for (const std::string& place : {"CUDA_HOME=" + environment.cuda_home, std::string("libraries of this process"),
                                   std::string("PATH"), std::string("~/.local"), host.system_prefix, host.loader_cache})
    EXPECT_NE(location.summary().find(place), std::string::npos) << location.summary();
}

// Each place in turn, from the last in the order to the first: every new one wins over those before it.
TEST_F(NvrtcSearch, EarlierPlacesWin) {
  const std::string cached = make("loader/libnvrtc.so.13");
  test::write_file(root / "ld.so.cache",
                   std::string("ld.so-1.7.0\0xyz\0", 16) + "libnvrtc.so.13" + '\0' + cached + '\0');
  EXPECT_EQ(find().path, cached);
  const std::string older = make("usr_local/cuda-12.4/lib64/libnvrtc.so.12");
  EXPECT_EQ(find().path, older);
  const std::string newer = make("usr_local/cuda-13.0/lib64/libnvrtc.so.13");
  EXPECT_EQ(find().path, newer);
  const std::string system = make("usr_local/cuda/lib64/libnvrtc.so.12");
  EXPECT_EQ(find().path, system) << "what the administrator chose";
  environment.home = (root / "home").string();
  const std::string user = make("home/.local/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  EXPECT_EQ(find().path, user);
  environment.path = "relative/bin:/nonexistent/bin:" + (root / "venv/bin").string();
  const std::string venv = make("venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  EXPECT_EQ(find().path, venv);
  const std::string venv13 = make("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  EXPECT_EQ(find().path, venv13);
  make("venv/bin/nvcc");
  const std::string conda = make("venv/lib/libnvrtc.so.13");
  EXPECT_EQ(find().path, conda);
  const std::string cudart = make("torch/nvidia/cuda_runtime/lib/libcudart.so.12");
  const std::string sibling = make("torch/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  test::write_file(host.maps, "7f00-7f01 r-xp 00000000 08:01 42    " + cudart + "\n7f02-7f03 rw-p 0 00:00 0\n");
  EXPECT_EQ(find().path, sibling);
  const std::string mapped = make("app/libnvrtc.so.13");
  test::write_file(host.maps, "7f00-7f01 r-xp 00000000 08:01 42    " + mapped + "\n");
  EXPECT_EQ(find().path, mapped);
  environment.cuda_home = (root / "toolkit").string();
  const std::string home = make("toolkit/lib64/libnvrtc.so.12");
  EXPECT_EQ(find().path, home);
  environment.nvrtc = make("mine/libnvrtc.so.99");
  EXPECT_EQ(find().path, environment.nvrtc);
}

TEST_F(NvrtcSearch, TheNewestMajorOfAFolderWinsAndOthersAreNotTaken) {
  environment.nvrtc = (root / "folder").string();
  make("folder/libnvrtc.alt.so.13");
  make("folder/libnvrtc-builtins.so.13.0");
  EXPECT_EQ(find().path, "");
  const std::string plain = make("folder/libnvrtc.so");
  EXPECT_EQ(find().path, plain);
  make("folder/libnvrtc.so.12");
  const std::string newest = make("folder/libnvrtc.so.13");
  EXPECT_EQ(find().path, newest);
}

TEST_F(NvrtcSearch, AnExplicitPathThatIsWrongIsNotReplacedByAnother) {
  environment.cuda_home = root.string();
  make("lib64/libnvrtc.so.13");
  environment.nvrtc = (root / "nowhere").string();
  const NvrtcLocation location = find();
  EXPECT_EQ(location.path, "");
  EXPECT_NE(location.summary().find("SLUICE_NVRTC=" + environment.nvrtc + ": none"), std::string::npos);
  const Log log;
  const auto compiler = make_nvrtc_compiler(environment, log);
  const CompilerIdentity identity = compiler->identity();
  EXPECT_FALSE(identity.available);
  EXPECT_NE(identity.why_not.find(environment.nvrtc), std::string::npos) << identity.why_not;
  EXPECT_EQ(compiler->version().error().code, Code::environment);
}

TEST_F(NvrtcSearch, AFileThatIsNoNvrtcSaysSoWhenUsed) {
  environment.nvrtc = make("libnvrtc.so.13");
  const Log log;
  const auto compiler = make_nvrtc_compiler(environment, log);
  EXPECT_TRUE(compiler->identity().available) << "it is only looked at";
  const auto version = compiler->version();
  ASSERT_FALSE(version.ok());
  for (const std::string& text : {environment.nvrtc, std::string("cannot be opened"), std::string("SLUICE_NVRTC")})
    EXPECT_NE(version.error().message.find(text), std::string::npos) << version.error().message;
  const KernelSpec spec;
  const auto binaries = compiler->compile({&spec, 1}, "sm_90", 4);
  ASSERT_EQ(binaries.size(), 1U);
  EXPECT_EQ(binaries[0].error().message, version.error().message);
}

TEST_F(NvrtcSearch, ALibraryThatIsNotNvrtcNamesTheMissingSymbol) {
  const auto library = open_nvrtc("libc.so.6");
  ASSERT_FALSE(library.ok());
  EXPECT_NE(library.error().message.find("nvrtcVersion"), std::string::npos) << library.error().message;
}

TEST(NvrtcTarget, IsTheGpusOwnOrTheNewestBelow) {
  NvrtcLibrary library;
  library.supported = {75, 80, 86, 90, 120};
  const struct {
    int capability;
    const char* target;
  } rows[] = {{75, "sm_75"},      {80, "sm_80"},       {90, "sm_90"},        {120, "sm_120"},
              {89, "compute_86"}, {103, "compute_90"}, {121, "compute_120"}, {130, "compute_120"}};
  for (const auto& row : rows) EXPECT_EQ(*nvrtc_target(library, row.capability), row.target) << row.capability;
  EXPECT_FALSE(nvrtc_target(library, 70).ok());
}

}  // namespace
}  // namespace sl
