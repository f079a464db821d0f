#include "jit/cubin.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace sl {
namespace {

// Offsets and sizes of the ELF-64 specification: the file's header, a section's header, a symbol.
constexpr std::size_t section_table_at = 40, section_count_at = 60, section_names_at = 62;
constexpr std::size_t section_size = 64, symbol_size = 24;
constexpr std::uint32_t symbol_table = 2;  // a section's type
// From sm_90 on: the kernel's own shared memory begins behind it, and ptxas -v does not count it.
constexpr int reserved_smem = 1024;
// A record of .nv.info: format, attribute, size of what follows; here the symbol's number and the value.
constexpr std::uint8_t sized_value = 0x04, frame_size = 0x11, register_count = 0x2f;

/// A number at `at`, 0 where the file has ended.
template <class Number>
Number number_at(std::string_view file, std::uint64_t at) {
  Number number = 0;
  if (at <= file.size() && file.size() - at >= sizeof(Number)) std::memcpy(&number, file.data() + at, sizeof(Number));
  return number;
}

/// As far as the file reaches.
std::string_view part(std::string_view file, std::uint64_t at, std::uint64_t size) {
  return at <= file.size() ? file.substr(at, size) : std::string_view{};
}

std::string_view text_at(std::string_view texts, std::uint64_t at) {
  const std::string_view rest = part(texts, at, texts.size());
  return rest.substr(0, rest.find('\0'));
}

struct Section {
  std::string_view name, content;
  std::uint32_t type = 0, link = 0;
  std::uint64_t size = 0;  ///< in memory: some have no content
};

class Sections {
 public:
  explicit Sections(std::string_view file)
      : file_(file),
        table_(number_at<std::uint64_t>(file, section_table_at)),
        count_(number_at<std::uint16_t>(file, section_count_at)) {
    names_ = section(number_at<std::uint16_t>(file, section_names_at)).content;
  }
  std::uint32_t count() const { return count_; }
  Section section(std::uint32_t i) const {
    if (i >= count_ || table_ > file_.size()) return {};
    const std::uint64_t header = table_ + i * section_size;
    Section s;
    s.name = text_at(names_, number_at<std::uint32_t>(file_, header));
    s.type = number_at<std::uint32_t>(file_, header + 4);
    s.size = number_at<std::uint64_t>(file_, header + 32);
    s.content = part(file_, number_at<std::uint64_t>(file_, header + 24), s.size);
    s.link = number_at<std::uint32_t>(file_, header + 40);
    return s;
  }

 private:
  std::string_view file_, names_;
  std::uint64_t table_;
  std::uint32_t count_;
};

/// The value that .nv.info has for a symbol.
int value_of(std::string_view info, std::uint8_t attribute, std::uint32_t symbol) {
  for (std::size_t at = 0; at + 4 <= info.size();) {
    const auto format = number_at<std::uint8_t>(info, at), found = number_at<std::uint8_t>(info, at + 1);
    const std::size_t size = format == sized_value ? number_at<std::uint16_t>(info, at + 2) : 0;
    if (format == sized_value && found == attribute && size >= 8 && number_at<std::uint32_t>(info, at + 4) == symbol) {
      return static_cast<int>(number_at<std::uint32_t>(info, at + 8) & 0x7fffffffU);
    }
    at += 4 + size;
  }
  return 0;
}

}  // namespace

CubinResources cubin_resources(std::string_view cubin, std::string_view entry) {
  CubinResources found;
  if (!cubin.starts_with("\x7f"
                         "ELF\x02\x01")) {
    return found;
  }
  const Sections sections(cubin);
  const std::string shared = ".nv.shared." + std::string(entry);
  std::optional<std::uint32_t> symbol;
  std::string_view info;
  bool reserves = false;
  for (std::uint32_t i = 0; i < sections.count(); ++i) {
    const Section section = sections.section(i);
    if (section.name == shared) found.static_smem = static_cast<int>(section.size & 0x7fffffffU);
    reserves = reserves || section.name == ".nv.shared.reserved.0";
    if (section.name == ".nv.info") info = section.content;
    if (section.type != symbol_table) continue;
    const std::string_view names = sections.section(section.link).content;
    for (std::uint32_t s = 0; (s + 1) * symbol_size <= section.content.size(); ++s) {
      if (text_at(names, number_at<std::uint32_t>(section.content, s * symbol_size)) == entry) symbol = s;
    }
  }
  if (reserves && found.static_smem >= reserved_smem) found.static_smem -= reserved_smem;
  if (symbol) {
    found.registers = value_of(info, register_count, *symbol);
    found.stack = value_of(info, frame_size, *symbol);
  }
  return found;
}

}  // namespace sl
