// What the fake cuDNN is told to be, and what it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tuner/cudnn/abi.hpp"

namespace sl::cudnn::fake {

struct FakeEngine {
  std::string kind;   ///< ok, slow, wrong, unwritten, overrun, huge, scratch, noplan, noexec, tf32
  std::string modes;  ///< letters of the heuristic modes that name it: a, b, i, f; none = only found by index
};

/// From a text: "version=91900;create=1001;fail=7;fuse=0;engines=ok:a,wrong:bf,slow:".
struct Script {
  std::size_t version = 91900;
  int create = 0;    ///< status of cudnnCreate
  int fail = 0;      ///< this call (from 1) of those that have a status fails
  bool fuse = true;  ///< false: graphs of more than the convolution are refused
  std::vector<FakeEngine> engines = {{"ok", "a"}};

  static Script parse(const std::string& text) {
    Script script;
    std::istringstream fields(text);
    for (std::string one; std::getline(fields, one, ';');) {
      const std::string key = one.substr(0, one.find('=')), value = one.substr(one.find('=') + 1);
      if (key == "version") script.version = std::stoul(value);
      if (key == "create") script.create = std::stoi(value);
      if (key == "fail") script.fail = std::stoi(value);
      if (key == "fuse") script.fuse = value != "0";
      if (key == "engines") script.engines = engines_of(value);
    }
    return script;
  }

  static std::vector<FakeEngine> engines_of(const std::string& text) {
    std::vector<FakeEngine> out;
    std::istringstream list(text);
    for (std::string one; std::getline(list, one, ',');) {
      const std::size_t colon = one.find(':');
      out.push_back({one.substr(0, colon), colon == std::string::npos ? "a" : one.substr(colon + 1)});
    }
    return out;
  }
};

struct Object {
  Kind kind{};
  bool finalized = false;
  int engine = -1;  ///< index, of engines and what is made of them
  std::map<int, std::vector<std::byte>> attributes;

  template <class T>
  std::vector<T> get(Attribute attribute) const {
    const auto found = attributes.find(static_cast<int>(attribute));
    if (found == attributes.end()) return {};
    std::vector<T> out(found->second.size() / sizeof(T));
    std::memcpy(out.data(), found->second.data(), out.size() * sizeof(T));
    return out;
  }
  template <class T>
  T first(Attribute attribute, T fallback = {}) const {
    const auto all = get<T>(attribute);
    return all.empty() ? fallback : all[0];
  }
  const Object* child(Attribute attribute) const { return first<const Object*>(attribute); }
};

struct State {
  std::mutex mutex;
  Script script;
  bool scripted = false;
  int calls = 0;
  std::set<Object*> live;
  std::string last_error;
};
State& state();

/// Computes the plan's graph on the pack's pointers. A cuDNN status.
Status_t run(const Object& plan, const Object& pack);

}  // namespace sl::cudnn::fake
