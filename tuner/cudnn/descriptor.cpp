#include "tuner/cudnn/descriptor.hpp"

#include <algorithm>
#include <utility>

namespace sl::cudnn {
namespace {

const char* name(Kind kind) {
  switch (kind) {
    case Kind::pointwise:
      return "pointwise";
    case Kind::convolution:
      return "convolution";
    case Kind::engine:
      return "engine";
    case Kind::engine_config:
      return "engine configuration";
    case Kind::heuristic:
      return "heuristic";
    case Kind::plan:
      return "plan";
    case Kind::knob_choice:
      return "knob choice";
    case Kind::operation_convolution:
      return "convolution operation";
    case Kind::operation_pointwise:
      return "pointwise operation";
    case Kind::operation_graph:
      return "operation graph";
    case Kind::variant_pack:
      return "variant pack";
    case Kind::tensor:
      return "tensor";
    case Kind::device_properties:
      return "device properties";
  }
  return "descriptor";
}

std::string of(Attribute attribute, Kind kind) {
  return "attribute " + std::to_string(static_cast<int>(attribute)) + " of a " + name(kind);
}

}  // namespace

Result<Descriptor> Descriptor::make(const Library& library, Kind kind) {
  Descriptor made;
  SL_TRY(library.check(std::string("creating a ") + name(kind),
                       library.create_descriptor(static_cast<int>(kind), &made.handle_)));
  made.library_ = &library;
  made.kind_ = kind;
  return made;
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : library_(other.library_), handle_(std::exchange(other.handle_, nullptr)), kind_(other.kind_) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this == &other) return *this;
  reset();
  library_ = other.library_;
  handle_ = std::exchange(other.handle_, nullptr);
  kind_ = other.kind_;
  return *this;
}

void Descriptor::reset() {
  if (handle_ != nullptr) library_->destroy_descriptor(handle_);
  handle_ = nullptr;
}

Status Descriptor::set(Attribute attribute, Type type, std::int64_t count, const void* elements) {
  return library_->check(
      "setting " + of(attribute, kind_),
      library_->set_attribute(handle_, static_cast<int>(attribute), static_cast<int>(type), count, elements));
}

Status Descriptor::set(Attribute attribute, std::span<const std::int64_t> values) {
  return set(attribute, Type::int64, static_cast<std::int64_t>(values.size()), values.data());
}

Status Descriptor::set(Attribute attribute, const Descriptor& other) {
  return set(attribute, Type::descriptor, 1, &other.handle_);
}

Status Descriptor::finalize() {
  return library_->check(std::string("finalizing a ") + name(kind_), library_->finalize(handle_));
}

Result<std::int64_t> Descriptor::get_int(Attribute attribute) const {
  std::int64_t count = 0, value = 0;
  SL_TRY(library_->check(
      "reading " + of(attribute, kind_),
      library_->get_attribute(handle_, static_cast<int>(attribute), static_cast<int>(Type::int64), 1, &count, &value)));
  if (count != 1) return Error{Code::device, "reading " + of(attribute, kind_) + ": no value"};
  return value;
}

Result<std::vector<int>> Descriptor::get_enums(Attribute attribute, Type type, std::int64_t most) const {
  std::int64_t count = 0;
  std::vector<int> values(static_cast<std::size_t>(most));
  SL_TRY(library_->check("reading " + of(attribute, kind_),
                         library_->get_attribute(handle_, static_cast<int>(attribute), static_cast<int>(type), most,
                                                 &count, values.data())));
  values.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, most)));
  return values;
}

Result<std::vector<Descriptor>> Descriptor::get_descriptors(Attribute attribute, Kind kind) const {
  const auto read = [&](std::int64_t asked, std::int64_t& count, void* into) {
    return library_->check("reading " + of(attribute, kind_),
                           library_->get_attribute(handle_, static_cast<int>(attribute),
                                                   static_cast<int>(Type::descriptor), asked, &count, into));
  };
  std::int64_t count = 0;
  SL_TRY(read(0, count, nullptr));
  std::vector<Descriptor> filled;
  std::vector<Descriptor_t> handles;
  for (std::int64_t i = 0; i < count; ++i) {
    SL_ASSIGN(Descriptor one, make(*library_, kind));
    handles.push_back(one.get());
    filled.push_back(std::move(one));
  }
  if (count > 0) SL_TRY(read(count, count, handles.data()));
  if (count < static_cast<std::int64_t>(filled.size()))
    filled.resize(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
  return filled;
}

}  // namespace sl::cudnn
