// How a JSON file that is for one device is found: the user's file, or the one of a folder, then what the library
// holds. For .cpp files only.
//
// T is what such a file holds: T::from_json(text, origin), matches(device), device_text(), for_any_device(), origin().
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/embedded.hpp"
#include "core/json_reader.hpp"
#include "device/device_info.hpp"

namespace sl {

/// How messages call such files: "routing table", and the variable that names one.
struct DeviceFileKind {
  std::string what, variable;
};

inline std::string device_text(const DeviceInfo& device) {
  return device.name + " (capability " + std::to_string(device.capability) + ")";
}

template <class T>
Result<T> load_device_file(const std::string& path) {
  SL_ASSIGN(const std::string text, read_text_file(path));
  return T::from_json(text, path);
}

inline Result<std::vector<std::string>> json_files(const std::string& folder, const DeviceFileKind& kind) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error))
    if (at->path().extension() == ".json") files.push_back(at->path().string());
  if (error) {
    return Error{Code::environment, folder + ": the folder of " + kind.what + "s cannot be read: " + error.message()};
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The folder's one file for the device; one for any device where there is none; nullopt where there is neither.
template <class T>
Result<std::optional<T>> find_in_folder(const DeviceInfo& device, const std::string& folder, const DeviceFileKind& kind,
                                        std::vector<std::string>& searched) {
  SL_ASSIGN(const std::vector<std::string> files, json_files(folder, kind));
  std::optional<T> best;
  for (const std::string& file : files) {
    SL_ASSIGN(T one, load_device_file<T>(file));
    if (!one.matches(device)) {
      searched.push_back(file + ": for " + one.device_text());
      continue;
    }
    if (best && best->for_any_device() == one.for_any_device())
      return Error{Code::invalid, "two " + kind.what + "s are for " + one.device_text() + ": " + best->origin() +
                                      " and " + file + "; one would be right"};
    searched.push_back(file + ": matches");
    if (!best || best->for_any_device()) best = std::move(one);
  }
  if (files.empty()) searched.push_back(folder + ": no *.json in it");
  return best;
}

/// What the user names, a file or a folder of them; nullopt where `path` is empty or the folder has none for the
/// device. A file that is not there, cannot be read or is for another device is an error. `searched` gets every place
/// looked at with the outcome.
template <class T>
Result<std::optional<T>> find_user_file(const DeviceInfo& device, const std::string& path, const DeviceFileKind& kind,
                                        std::vector<std::string>& searched) {
  if (path.empty()) return std::optional<T>();
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    return Error{Code::environment, path + ": the " + kind.what + " (" + kind.variable +
                                        ") does not exist; a JSON file or a folder of them would be right"};
  if (std::filesystem::is_directory(status)) return find_in_folder<T>(device, path, kind, searched);
  SL_ASSIGN(T one, load_device_file<T>(path));
  if (!one.matches(device))
    return Error{Code::invalid, path + ": the " + kind.what + " is for " + one.device_text() + ", the device is " +
                                    device_text(device) + "; give a " + kind.what +
                                    " for this device, or a folder of them"};
  searched.push_back(path + ": matches");
  return std::optional<T>(std::move(one));
}

/// The library's own for the device; else its one for any device; nullopt where it has neither.
template <class T>
Result<std::optional<T>> find_embedded(const DeviceInfo& device, std::span<const EmbeddedFile> files,
                                       std::vector<std::string>& searched) {
  std::optional<T> fallback;
  for (const EmbeddedFile& file : files) {
    const std::string origin = "embedded:" + std::string(file.path.substr(0, file.path.rfind(".json")));
    SL_ASSIGN(T one, T::from_json(file.content, origin));
    if (one.for_any_device()) {
      fallback = std::move(one);
    } else if (one.matches(device)) {
      searched.push_back(origin + ": matches");
      return std::optional<T>(std::move(one));
    } else {
      searched.push_back(origin + ": for " + one.device_text());
    }
  }
  return fallback;
}

}  // namespace sl
