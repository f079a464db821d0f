// Which libraries are taken for cuDNN.
#include "library.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tuner/cudnn/rival.hpp"

namespace sl::cudnn::test {
namespace {

std::string refusal(const std::string& path) {
  const auto loaded = load_library(path, {});
  EXPECT_FALSE(loaded.ok());
  if (loaded.ok()) return {};
  EXPECT_EQ(loaded.error().code, Code::environment);
  return loaded.error().message;
}

TEST(CudnnLibrary, SaysWhatIsWrongWithWhatItFound) {
  EXPECT_NE(refusal("/nowhere/libcudnn.so.9").find("--cudnn-library"), std::string::npos);
  EXPECT_NE(refusal("/").find("/libcudnn.so.9"), std::string::npos) << "a folder is looked into";
  EXPECT_NE(refusal(FAKE_CUDNN_OMIT_PATH).find("no symbol cudnnGetVersion"), std::string::npos);
  const FakeLibrary fake("version=8905");
  EXPECT_NE(refusal(FAKE_CUDNN_PATH).find("cuDNN 8.9.5; a version 9 is needed"), std::string::npos)
      << refusal(FAKE_CUDNN_PATH);
  fake.script("version=100000");
  EXPECT_NE(refusal(FAKE_CUDNN_PATH).find("cuDNN 10."), std::string::npos);
}

TEST(CudnnLibrary, NamesItselfAndWhatIsMapped) {
  const FakeLibrary fake("version=91900");
  const auto loaded = load_library(FAKE_CUDNN_PATH, {});
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ((*loaded)->version_text(), "9.19.0");
  EXPECT_EQ((*loaded)->path, FAKE_CUDNN_PATH);
  const auto all = mapped();
  EXPECT_NE(std::find(all.begin(), all.end(), FAKE_CUDNN_PATH), all.end());
}

TEST(CudnnLibrary, AHandleThatIsRefusedIsAnErrorWithItsWords) {
  const FakeLibrary fake("create=1001");
  const auto device = open_host_device();
  const auto rival = Rival::open(*device, fake.library);
  ASSERT_FALSE(rival.ok());
  EXPECT_NE(rival.error().message.find("CUDNN_STATUS_1001 (no GPU, says the script)"), std::string::npos)
      << rival.error().message;
}

TEST(CudnnLibrary, CudnnIsNotRunOnTheHostDevice) {
  const FakeLibrary fake("");
  const auto gpu = std::make_shared<Library>(*fake.library);
  gpu->on_host = false;
  const auto device = open_host_device();
  const auto rival = Rival::open(*device, gpu);
  ASSERT_FALSE(rival.ok());
  EXPECT_EQ(rival.error().code, Code::unsupported);
}

}  // namespace
}  // namespace sl::cudnn::test
