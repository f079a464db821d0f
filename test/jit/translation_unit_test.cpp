// Kernel specialisations as text, and the embedded sources' digests.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "jit/compiler.hpp"

namespace sl::test {
namespace {

KernelSpec sample() {
  KernelSpec spec;
  spec.schedule = "sample";
  spec.source = "testing/memory.cuh";
  spec.constants = {{"R", 3}, {"BIG", 1LL << 40}, {"NEGATIVE", -2}};
  spec.threads = 96;
  spec.min_blocks = 2;
  return spec;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(KernelSpec, CanonicalTextNamesEverything) {
  EXPECT_EQ(sample().canonical(),
            "schedule=sample;source=testing/memory.cuh;threads=96;min_blocks=2;R=3;BIG=1099511627776;NEGATIVE=-2");
}

TEST(KernelSpec, EveryFieldChangesTheEntry) {
  std::set<std::string> entries = {sample().entry()};
  const auto changed = [&](auto change) {
    KernelSpec spec = sample();
    change(spec);
    return entries.insert(spec.entry()).second;
  };
  EXPECT_TRUE(changed([](KernelSpec& s) { s.schedule = "other"; }));
  EXPECT_TRUE(changed([](KernelSpec& s) { s.source = "other.cuh"; }));
  EXPECT_TRUE(changed([](KernelSpec& s) { s.threads = 64; }));
  EXPECT_TRUE(changed([](KernelSpec& s) { s.min_blocks = 1; }));
  EXPECT_TRUE(changed([](KernelSpec& s) { s.constants[0].second = 4; }));
  EXPECT_TRUE(changed([](KernelSpec& s) { s.constants[0].first = "S"; }));
  EXPECT_TRUE(changed([](KernelSpec& s) { s.constants.pop_back(); }));
  EXPECT_FALSE(changed([](KernelSpec&) {}));
  EXPECT_TRUE(std::regex_match(sample().entry(), std::regex("sluice_sample_[0-9a-f]{16}"))) << sample().entry();
}

TEST(TranslationUnit, ConstantsKeepTheirWidth) {
  struct Case {
    std::int64_t value;
    const char* want;
  };
  const Case cases[] = {{0, "int V = 0;"},
                        {2147483647, "int V = 2147483647;"},
                        {2147483648, "long long V = 2147483648LL;"},
                        {-2147483647, "int V = -2147483647;"},
                        {-2147483648LL, "long long V = -2147483648LL;"},
                        {INT64_MIN, "long long V = -9223372036854775807LL - 1;"}};
  for (const Case& c : cases) {
    KernelSpec spec = sample();
    spec.constants = {{"V", c.value}};
    const std::string text = translation_unit({&spec, 1});
    EXPECT_NE(text.find(std::string("static constexpr ") + c.want), std::string::npos) << text;
  }
}

TEST(TranslationUnit, OneStructAndOneEntryForEverySpecOneIncludeForEverySource) {
  KernelSpec other = sample();
  other.threads = 128;
  const KernelSpec specs[] = {sample(), other, sample()};
  const std::string text = translation_unit(specs);
  EXPECT_EQ(count(text, "#include \"testing/memory.cuh\""), 1U) << text;
  EXPECT_EQ(count(text, "struct Cfg_"), 2U) << text;
  EXPECT_EQ(count(text, "SL_KERNEL_ENTRY("), 2U) << text;
  EXPECT_EQ(count(text, "static constexpr int THREADS = 96;"), 1U) << text;
  EXPECT_EQ(count(text, "SL_KERNEL_ENTRY(" + other.entry() + ", sample, Cfg_" + other.entry() + ", 2)"), 1U) << text;
}

TEST(KernelSource, EveryIncludeIsAnEmbeddedFileByItsPathFromTheRoot) {
  // NVRTC finds embedded headers by exactly the text in the quotes; the digest follows the same rule.
  const std::regex include("#[ \t]*include[ \t]*([\"<])([^\">]*)[\">]");
  for (const std::string_view path : kernel_source_paths()) {
    const std::string text(kernel_source(path));
    for (auto it = std::sregex_iterator(text.begin(), text.end(), include); it != std::sregex_iterator(); ++it) {
      EXPECT_EQ((*it)[1], "\"") << path << " includes a system header";
      EXPECT_FALSE(kernel_source((*it)[2].str()).empty()) << path << " includes " << (*it)[2];
    }
  }
}

TEST(KernelSource, CodeHasNoCommentsAndNoLayout) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"// a comment\n\n  int a;  // and one\n", "int a;\n"},
      {"int a; // no newline", "int a;"},
      {"int/* two\nlines */a;\n", "int a;\n"},
      {"int a; /* never closed", "int a;"},
      {"  #define A \t 1  \n\n\n#define B 2", "#define A 1\n#define B 2"},
      {"a  +\r\n  b", "a +\nb"},
      {R"(asm("ld  // a;  /* b */" : "=r"(x));  // c)", R"(asm("ld  // a;  /* b */" : "=r"(x));)"},
      {R"(f("\"  // ", '"', '\'', 1'000);  // "c")", R"(f("\"  // ", '"', '\'', 1'000);)"},
      {"a / b // c", "a / b"},
  };
  for (const auto& [text, code] : cases) EXPECT_EQ(kernel_code(text), code) << text;
  for (const std::string_view path : kernel_source_paths()) {
    const std::string code = kernel_code(kernel_source(path));
    EXPECT_EQ(kernel_code(code), code) << path;
    EXPECT_EQ(code.find("//"), std::string::npos) << path;
  }
}

TEST(KernelSource, DigestCoversHeadersAndTellsSourcesApart) {
  EXPECT_EQ(kernel_source_digest("testing/memory.cuh"), kernel_source_digest("testing/memory.cuh"));
  EXPECT_NE(kernel_source_digest("testing/memory.cuh"), kernel_source_digest("testing/collectives.cuh"));
  EXPECT_NE(kernel_source_digest("testing/memory.cuh"), kernel_source_digest("common/platform.cuh"));
  EXPECT_NE(kernel_source_digest("no_such.cuh"), kernel_source_digest("testing/memory.cuh"));
  EXPECT_TRUE(kernel_source("no_such.cuh").empty());
  EXPECT_FALSE(kernel_source("common/params.h").empty());
}

}  // namespace
}  // namespace sl::test
