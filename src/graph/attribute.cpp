#include <utility>

#include "graph/editor.hpp"

namespace sl::graph {

Attribute Attribute::of(std::string name, std::int64_t value) {
  Attribute made;
  made.name = std::move(name);
  made.integer = value;
  return made;
}

Attribute Attribute::of(std::string name, double value) {
  Attribute made;
  made.name = std::move(name);
  made.kind = Kind::real;
  made.real = value;
  return made;
}

Attribute Attribute::of(std::string name, std::string value) {
  Attribute made;
  made.name = std::move(name);
  made.kind = Kind::text;
  made.text = std::move(value);
  return made;
}

Attribute Attribute::of(std::string name, std::vector<std::int64_t> value) {
  Attribute made;
  made.name = std::move(name);
  made.kind = Kind::integers;
  made.integers = std::move(value);
  return made;
}

Attribute Attribute::of(std::string name, std::vector<double> value) {
  Attribute made;
  made.name = std::move(name);
  made.kind = Kind::reals;
  made.reals = std::move(value);
  return made;
}

}  // namespace sl::graph
