// A Binary as a store entry and back, and the keys that entries go by.
#include <nlohmann/json.hpp>

#include "jit/binary_cache.hpp"
#include "jit/nvrtc.hpp"

namespace sl {
namespace {

// Raise when what a key covers, an entry's layout or the meaning of a kernel's parameters changes.
constexpr std::int64_t schema = 1;

constexpr struct {
  Binary::Format format;
  const char* name;
} formats[] = {{Binary::Format::cubin, "cubin"}, {Binary::Format::ptx, "ptx"}, {Binary::Format::shared_object, "so"}};

KeyBuilder spec_key(const char* what, const KernelSpec& spec, const std::string& arch) {
  KeyBuilder key;
  key.add("what", what).add("schema", schema).add("spec", spec.canonical()).add("arch", arch);
  key.add("source", kernel_source_digest(spec.source).hex());
  // The unit around the source: its text changes when translation_unit() does.
  key.add("unit", digest_text(translation_unit({&spec, 1})).hex());
  for (const char* const option : nvrtc_options()) key.add("option", option);  // the host's are in its identity
  return key;
}

}  // namespace

Digest binary_key(const KernelSpec& spec, const std::string& arch, const CompilerIdentity& compiler) {
  return spec_key("binary", spec, arch).add("compiler", compiler.text).finish();
}

Digest binary_alias_key(const KernelSpec& spec, const std::string& arch) {
  return spec_key("alias", spec, arch).finish();
}

StoreEntry to_entry(const Binary& binary, const CompilerIdentity& compiler) {
  const char* format = "";
  for (const auto& known : formats)
    if (known.format == binary.format) format = known.name;
  const nlohmann::json meta{{"what", "binary"},
                            {"schema", schema},
                            {"format", format},
                            {"entry", binary.entry},
                            {"arch", binary.arch},
                            {"compiler", binary.compiler},
                            {"compiler_file", compiler.path},
                            {"registers", binary.registers},
                            {"spill_bytes", binary.spill_bytes},
                            {"static_smem", binary.static_smem}};
  // A path need not be UTF-8; what is not is replaced, not thrown over.
  return {meta.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), binary.code};
}

Result<Binary> binary_from_entry(const StoreEntry& entry) try {
  const nlohmann::json meta = nlohmann::json::parse(entry.meta);
  if (meta.at("what") != "binary") return Error{Code::invalid, "the entry is no binary: " + entry.meta};
  if (meta.at("schema") != schema)
    return Error{Code::invalid, "binary entry of schema " + meta.at("schema").dump() + "; this build reads schema " +
                                    std::to_string(schema)};
  if (entry.payload.empty()) return Error{Code::invalid, "binary entry without code: " + entry.meta};
  Binary binary;
  const auto format = meta.at("format").get<std::string>();
  bool known_format = false;
  for (const auto& known : formats)
    if (format == known.name) {
      binary.format = known.format;
      known_format = true;
    }
  if (!known_format) return Error{Code::invalid, "binary entry of format " + format + "; known: cubin, ptx, so"};
  binary.code = entry.payload;
  binary.entry = meta.at("entry").get<std::string>();
  binary.arch = meta.at("arch").get<std::string>();
  binary.compiler = meta.at("compiler").get<std::string>();
  binary.registers = meta.at("registers").get<int>();
  binary.spill_bytes = meta.at("spill_bytes").get<int>();
  binary.static_smem = meta.at("static_smem").get<int>();
  return binary;
} catch (const std::exception& error) {
  return Error{Code::invalid, std::string("binary entry with malformed metadata: ") + error.what()};
}

}  // namespace sl
