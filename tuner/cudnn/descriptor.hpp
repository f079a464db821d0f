// One cuDNN descriptor as a value: attributes go in, finalize() closes it, and it is destroyed with its owner.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tuner/cudnn/library.hpp"

namespace sl::cudnn {

/// Where plans are made for: the handle of the current GPU; or, without a GPU, the description of one, as JSON in the
/// library's own form (then plans can be made and never run). One of the two is null.
class Descriptor;
struct Context {
  const Library* library = nullptr;
  Handle_t handle = nullptr;
  const Descriptor* device = nullptr;
};

/// Move-only. Every error names the descriptor, the attribute, and cuDNN's words. Not thread-safe.
class Descriptor {
 public:
  Descriptor() = default;
  static Result<Descriptor> make(const Library&, Kind);
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  Descriptor_t get() const { return handle_; }

  Status set(Attribute, Type, std::int64_t count, const void* elements);
  Status set(Attribute, std::span<const std::int64_t>);
  Status set(Attribute attribute, std::int64_t value) { return set(attribute, Type::int64, 1, &value); }
  Status set(Attribute attribute, bool value) { return set(attribute, Type::boolean, 1, &value); }
  Status set(Attribute attribute, float value) { return set(attribute, Type::float32, 1, &value); }
  Status set(Attribute attribute, double value) { return set(attribute, Type::float64, 1, &value); }
  Status set(Attribute, const Descriptor&);
  /// One of cuDNN's enumerations.
  Status set(Attribute attribute, Type type, int value) { return set(attribute, type, 1, &value); }
  Status finalize();

  Result<std::int64_t> get_int(Attribute) const;
  /// A list of enumerators, at most `most`.
  Result<std::vector<int>> get_enums(Attribute, Type, std::int64_t most) const;
  /// A list of descriptors of `kind`, each filled by cuDNN.
  Result<std::vector<Descriptor>> get_descriptors(Attribute, Kind) const;

 private:
  void reset();

  const Library* library_ = nullptr;
  Descriptor_t handle_ = nullptr;
  Kind kind_ = Kind::tensor;
};

}  // namespace sl::cudnn
