#include <charconv>

#include "schedules/schedule.hpp"

namespace sl {

int Config::get(std::string_view name) const {
  for (const auto& [knob, value] : knobs) {
    if (knob == name) return value;
  }
  return 1;  // harmless in a division; Schedule::fits refuses such a configuration by name
}

std::string Config::to_string() const {
  std::string text;
  for (const auto& [knob, value] : knobs) {
    if (!text.empty()) text += ',';
    text += knob + '=' + std::to_string(value);
  }
  return text;
}

namespace {

bool knob_name(std::string_view name) {
  if (name.empty() || name.size() > 32) return false;
  for (const char c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

}  // namespace

std::optional<Config> Config::parse(std::string_view text) {
  Config config;
  if (text.empty()) return config;
  for (;;) {
    const std::string_view item = text.substr(0, text.find(','));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || !knob_name(item.substr(0, equals))) return std::nullopt;
    const std::string_view digits = item.substr(equals + 1);
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    for (const auto& [knob, unused] : config.knobs) {
      if (knob == item.substr(0, equals)) return std::nullopt;
    }
    config.knobs.emplace_back(item.substr(0, equals), value);
    if (item.size() == text.size()) return config;
    text.remove_prefix(item.size() + 1);
  }
}

}  // namespace sl
