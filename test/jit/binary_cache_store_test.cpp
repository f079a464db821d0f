// The binary store behind the cache: a second process compiles nothing and opens no compiler.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "binary_cache_fixture.hpp"
#include "support/temp_dir.hpp"

namespace sl {
namespace {

using test::CountingCompiler;
using test::fake_spec;
using test::fake_specs;
using test::h200;

class BinaryCacheStore : public testing::Test {
 protected:
  std::shared_ptr<FileStore> open_store() {
    StoreOptions options;
    options.directory = directory.path() / "binaries";
    options.kind = 1;
    return std::make_shared<FileStore>(options, log);
  }
  /// What a new process would make.
  BinaryCache process(std::shared_ptr<CountingCompiler> with) { return {std::move(with), open_store(), log}; }

  test::TempDir directory;
  std::vector<std::string> warnings;
  Log log{[this](LogLevel level, std::string_view text) {
            if (level >= LogLevel::warning) warnings.emplace_back(text);
          },
          LogLevel::info};
  std::shared_ptr<CountingCompiler> compiler = std::make_shared<CountingCompiler>();
};

TEST_F(BinaryCacheStore, ASecondProcessCompilesNothingAndOpensNoCompiler) {
  const auto specs = fake_specs(4);
  const auto first = process(compiler).get(specs, h200(), 2);
  const auto second_compiler = std::make_shared<CountingCompiler>();
  BinaryCache second = process(second_compiler);
  const auto again = second.get(specs, h200(), 2);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    ASSERT_TRUE(first[i].ok() && again[i].ok());
    EXPECT_EQ((*first[i])->code, (*again[i])->code);
    EXPECT_EQ((*again[i])->registers, 40);
    EXPECT_EQ((*again[i])->compiler, "fake compiler 1");
  }
  EXPECT_EQ(second_compiler->opened, 0);
  EXPECT_EQ(second.counters().compiles, 0U);
  EXPECT_EQ(second.counters().binary_hits, 4U);
  EXPECT_TRUE(warnings.empty()) << warnings[0];
}

TEST_F(BinaryCacheStore, PtxForANewerDeviceIsFoundWithoutOpeningTheCompiler) {
  const KernelSpec spec = fake_spec(1);
  DeviceInfo future = h200();
  future.capability = 130;
  (void)process(compiler).get({&spec, 1}, future, 1);
  const auto second_compiler = std::make_shared<CountingCompiler>();
  const auto again = process(second_compiler).get({&spec, 1}, future, 1)[0];
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->format, Binary::Format::ptx);
  EXPECT_EQ((*again)->arch, "compute_121");
  EXPECT_EQ(second_compiler->opened, 0);
}

TEST_F(BinaryCacheStore, AnotherCompilerCompilesAnew) {
  const KernelSpec spec = fake_spec(1);
  (void)process(compiler).get({&spec, 1}, h200(), 1);
  const auto newer = std::make_shared<CountingCompiler>("fake compiler 2");
  const auto result = process(newer).get({&spec, 1}, h200(), 1)[0];
  ASSERT_TRUE(result.ok());
  EXPECT_EQ((*result)->compiler, "fake compiler 2");
  EXPECT_EQ(newer->compiled, 1);
}

TEST_F(BinaryCacheStore, WithoutACompilerAnyEntryOfEqualSourceOptionsAndArchHits) {
  const KernelSpec spec = fake_spec(1);
  (void)process(compiler).get({&spec, 1}, h200(), 1);
  const auto absent = std::make_shared<CountingCompiler>("none", false);
  BinaryCache second = process(absent);
  const auto result = second.get({&spec, 1}, h200(), 1)[0];
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ((*result)->compiler, "fake compiler 1");
  EXPECT_EQ(second.counters().binary_hits, 1U);
  EXPECT_EQ(absent->opened, 0);

  const KernelSpec unknown = fake_spec(2);
  const auto miss = second.get({&unknown, 1}, h200(), 1)[0];
  ASSERT_FALSE(miss.ok());
  EXPECT_EQ(miss.error().code, Code::environment);
  for (const std::string& text : {(directory.path() / "binaries").string(), std::string("looked in /opt/fake")})
    EXPECT_NE(miss.error().message.find(text), std::string::npos) << miss.error().message;
  BinaryCache none(nullptr, open_store(), log);
  EXPECT_TRUE(none.get({&spec, 1}, h200(), 1)[0].ok()) << "a cache that was given no compiler at all hits too";
}

TEST_F(BinaryCacheStore, DamagedEntriesAreMissesThatCompileAnew) {
  const KernelSpec spec = fake_spec(1);
  (void)process(compiler).get({&spec, 1}, h200(), 1);
  for (const char* const damage : {"truncated", "empty", "flipped"}) {
    SCOPED_TRACE(damage);
    for (const StoreListing& entry : open_store()->list()) {
      std::string bytes = test::read_file(entry.path);
      if (damage == std::string("truncated")) bytes.resize(bytes.size() - 5);
      if (damage == std::string("empty")) bytes.clear();
      if (damage == std::string("flipped")) bytes.back() = static_cast<char>(bytes.back() ^ 1);
      test::write_file(entry.path, bytes);
    }
    const auto again = std::make_shared<CountingCompiler>();
    const auto result = process(again).get({&spec, 1}, h200(), 1)[0];
    ASSERT_TRUE(result.ok());
    EXPECT_EQ((*result)->code, "code of " + spec.canonical() + " by fake compiler 1");
    EXPECT_EQ(again->compiled, 1);
    const auto healed = std::make_shared<CountingCompiler>();
    (void)process(healed).get({&spec, 1}, h200(), 1);
    EXPECT_EQ(healed->compiled, 0) << "the good entry took its place";
  }
}

// Entries that are whole, and wrong: what a store of another build or a copied file could hold.
TEST_F(BinaryCacheStore, AWholeEntryThatIsNotThisKernelIsAMissWithOneWarning) {
  const KernelSpec spec = fake_spec(1);
  const Digest key = binary_key(spec, "sm_90", compiler->identity());
  Binary other;
  other.code = "x";
  other.entry = fake_spec(2).entry();
  const StoreEntry good = to_entry(other, compiler->identity());
  for (const StoreEntry& entry : {good, StoreEntry{"not json", "x"}, StoreEntry{"{}", "x"}, StoreEntry{"[1]", "x"}}) {
    warnings.clear();
    ASSERT_TRUE(open_store()->put(key, entry).ok());
    const Log fresh{[this](LogLevel, std::string_view text) { warnings.emplace_back(text); }, LogLevel::warning};
    const auto again = std::make_shared<CountingCompiler>();
    BinaryCache cache(again, open_store(), fresh);
    EXPECT_TRUE(cache.get({&spec, 1}, h200(), 1)[0].ok());
    EXPECT_EQ(again->compiled, 1);
    EXPECT_EQ(warnings.size(), 1U);
  }
}

TEST_F(BinaryCacheStore, AnAliasThatLeadsNowhereIsAMiss) {
  const KernelSpec spec = fake_spec(1);
  for (const char* const payload :
       {"nonsense", "00000000000000000000000000000000", "zz00000000000000000000000000zzzz"}) {
    ASSERT_TRUE(open_store()->put(binary_alias_key(spec, "sm_90"), {"{}", payload}).ok());
    BinaryCache none(nullptr, open_store(), log);
    EXPECT_FALSE(none.get({&spec, 1}, h200(), 1)[0].ok());
  }
}

TEST(BinaryEntry, RoundTripsEveryField) {
  for (const auto format : {Binary::Format::cubin, Binary::Format::ptx, Binary::Format::shared_object}) {
    Binary binary;
    binary.format = format;
    binary.code = std::string("\0\1\xff ELF", 7);
    binary.entry = "sluice_x";
    binary.arch = "sm_90";
    binary.compiler = "nvrtc 13.0";
    binary.registers = 255;
    binary.spill_bytes = 8;
    binary.static_smem = 1024;
    const CompilerIdentity from{true, "text", "/not/\xff/utf8", ""};
    const auto back = binary_from_entry(to_entry(binary, from));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(back->format, binary.format);
    EXPECT_EQ(back->code, binary.code);
    EXPECT_EQ(back->entry, binary.entry);
    EXPECT_EQ(back->arch, binary.arch);
    EXPECT_EQ(back->compiler, binary.compiler);
    EXPECT_EQ(back->registers, 255);
    EXPECT_EQ(back->spill_bytes, 8);
    EXPECT_EQ(back->static_smem, 1024);
  }
}

TEST(BinaryEntry, MalformedOnesAreErrorsThatSayWhat) {
  Binary binary;
  binary.code = "x";
  const StoreEntry good = to_entry(binary, {});
  const auto with = [&](const char* from, const char* to) {
    StoreEntry entry = good;
    entry.meta.replace(entry.meta.find(from), std::string(from).size(), to);
    return entry;
  };
  const struct {
    StoreEntry entry;
    const char* says;
  } rows[] = {{with("\"cubin\"", "\"elf\""), "format elf"},
              {with("\"schema\":1", "\"schema\":99"), "schema 99"},
              {with("\"what\":\"binary\"", "\"what\":\"alias\""), "no binary"},
              {with("\"registers\":0", "\"registers\":\"many\""), "malformed"},
              {{good.meta, ""}, "without code"},
              {{"", "x"}, "malformed"}};
  for (const auto& row : rows) {
    const auto result = binary_from_entry(row.entry);
    ASSERT_FALSE(result.ok()) << row.entry.meta;
    EXPECT_NE(result.error().message.find(row.says), std::string::npos) << result.error().message;
  }
}

}  // namespace
}  // namespace sl
