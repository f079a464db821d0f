#include "store/file_store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>

#include "store/file_store_impl.hpp"

namespace sl {
namespace {

Error store_error(std::string message) { return {Code::environment, std::move(message)}; }

std::filesystem::path absolute_without_slash(const std::filesystem::path& path) {
  if (path.empty()) return path;
  std::error_code ignored;
  std::filesystem::path full = std::filesystem::absolute(path, ignored);
  if (ignored) full = path;
  full = full.lexically_normal();
  // A trailing slash would make O_NOFOLLOW follow.
  return full.has_filename() ? full : full.parent_path();
}

bool stamp_is_old(const struct stat& info) {
  const std::time_t age = std::time(nullptr) - info.st_mtim.tv_sec;
  return age > stamp_seconds || age < -stamp_seconds;  // a stamp from the future is as wrong as an old one
}

const char* class_of(EntryFault fault) {
  switch (fault) {
    case EntryFault::version:
      return "version";
    case EntryFault::kind:
    case EntryFault::magic:
      return "foreign";
    default:
      return "damaged";
  }
}

}  // namespace

FileStore::FileStore(StoreOptions options, const Log& log) {
  options.directory = absolute_without_slash(options.directory);
  impl_ = std::make_unique<Impl>(std::move(options), log);
}

FileStore::~FileStore() = default;

const StoreOptions& FileStore::options() const { return impl_->options; }

void FileStore::Impl::warn(const std::string& cause, const std::string& message) const {
  log.warn_once(options.directory.string() + ':' + cause, message);
}

ReadOutcome FileStore::Impl::read_file(const Directory& directory, const std::string& name, const Digest& key,
                                       Stamp stamp) const {
  ReadOutcome out;
  // O_NONBLOCK: a FIFO left here must not hang the caller.
  const Fd fd = open_at(directory.fd.get(), name.c_str(), O_RDONLY | O_NONBLOCK, 0, out.error);
  const auto failed = [&out](int error) {
    out.error = error;
    out.problem = "it cannot be read: " + error_text(error);
    return std::move(out);
  };
  const auto faulty = [&out](EntryFault fault, std::string why) {
    out.fault = fault;
    out.problem = std::move(why);
    return std::move(out);
  };
  if (!fd.ok()) return failed(out.error);
  if (::fstat(fd.get(), &out.info) != 0) return failed(errno);
  if (!S_ISREG(out.info.st_mode)) return faulty(EntryFault::magic, "it is not a regular file");
  if (std::string why = distrust(out.info); !why.empty()) return faulty(EntryFault::magic, std::move(why));
  const auto bytes = static_cast<std::uint64_t>(out.info.st_size);
  if (bytes < entry_header_bytes)
    return faulty(EntryFault::size, "it has " + std::to_string(bytes) + " bytes, less than a header");

  EntryHeaderBytes header;
  if (const int error = read_exactly(fd.get(), header.data(), header.size()); error != 0) return failed(error);
  const EntryCheck check = check_header(header, bytes, options.kind, key);
  if (!check.ok()) return faulty(check.fault, check.text);
  std::string body(bytes - entry_header_bytes, '\0');
  if (const int error = read_exactly(fd.get(), body.data(), body.size()); error != 0) return failed(error);
  if (!checksum_matches(header, body)) return faulty(EntryFault::checksum, "its checksum is wrong");

  if (stamp == Stamp::renew && stamp_is_old(out.info)) {
    const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
    (void)::futimens(fd.get(), times);  // on a read-only file system the stamp stays as it is
  }
  out.entry.payload = body.substr(check.header.meta_bytes);
  body.resize(check.header.meta_bytes);
  out.entry.meta = std::move(body);
  return out;
}

ReadOutcome FileStore::Impl::read(const Digest& key) const {
  ReadOutcome out;
  const Directory root = open_root(Create::no);
  if (!root.ok()) {
    out.error = root.error;
    out.problem = root.problem;
    return out;
  }
  const Directory fan_out = open_child(root, options.directory, entry_fan_out(key), Create::no);
  if (!fan_out.ok()) {
    out.error = fan_out.error;
    out.problem = fan_out.problem;
    return out;
  }
  return read_file(fan_out, entry_file_name(key), key, Stamp::renew);
}

std::optional<StoreEntry> FileStore::get(const Digest& key) const {
  if (impl_->options.directory.empty()) return std::nullopt;
  try {
    ReadOutcome out = impl_->read(key);
    if (out.error == ESTALE) out = impl_->read(key);  // NFS: the file was replaced under an old handle
    if (out.problem.empty()) return std::move(out.entry);
    if (out.error == ENOENT || out.error == ESTALE) return std::nullopt;
    if (out.error != 0)
      impl_->warn("errno " + std::to_string(out.error), "cache " + impl_->options.directory.string() +
                                                            " cannot be read, results are made anew: " + out.problem);
    else
      impl_->warn(class_of(out.fault), "cache file " + entry_file_name(key) + " in " +
                                           impl_->options.directory.string() + " counts as a miss: " + out.problem +
                                           " (others like it are not reported; `sluice cache verify` lists them)");
  } catch (const std::exception&) {  // out of memory: a miss is always right
  }
  return std::nullopt;
}

Status FileStore::Impl::put_failed(const char* step, const std::string& problem, int error) const {
  std::string message = "nothing written to cache " + options.directory.string() + " (" + step + "): " + problem +
                        "; results are kept in memory only. SLUICE_CACHE_DIR names another place";
  warn("errno " + std::to_string(error), message);
  return store_error(std::move(message));
}

Status FileStore::Impl::put_once(const Digest& key, const std::string& image, int& error) {
  const auto failed = [&](const char* step, const std::string& problem, int why) {
    error = why;
    // The first attempt after a vanished directory is repeated, so it is not worth a warning yet.
    if (why == ENOENT || why == ESTALE) return Status(store_error(problem));
    return put_failed(step, problem, why);
  };
  const Directory root = open_root(Create::yes);
  if (!root.ok()) return failed("directory", root.problem, root.error);
  const Directory temporaries = open_child(root, options.directory, temporaries_name, Create::yes);
  if (!temporaries.ok()) return failed("directory", temporaries.problem, temporaries.error);
  const Directory fan_out = open_child(root, options.directory, entry_fan_out(key), Create::yes);
  if (!fan_out.ok()) return failed("directory", fan_out.problem, fan_out.error);

  Fd fd;
  std::string temporary;
  for (int attempt = 0; attempt < 16 && !fd.ok(); ++attempt) {
    temporary = std::to_string(::getpid()) + '-' + random_hex();
    fd = open_at(temporaries.fd.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600, error);
    if (!fd.ok() && error != EEXIST) break;
  }
  if (!fd.ok()) return failed("create", error_text(error), error);

  const char* step = "write";
  int why = write_fully(fd.get(), image);
  if (why == 0) why = sync_fd(fd.get());
  const int closed = fd.close();
  if (why == 0) why = closed;
  const std::string name = entry_file_name(key);
  if (why == 0) {
    step = "rename";
    if (::renameat(temporaries.fd.get(), temporary.c_str(), fan_out.fd.get(), name.c_str()) != 0) why = errno;
  }
  if (why != 0) {
    (void)::unlinkat(temporaries.fd.get(), temporary.c_str(), 0);  // if it stays, prune removes it after an hour
    return failed(step, error_text(why), why);
  }
  // The entry is published. From here nothing is a failure of this call.
  (void)sync_fd(fan_out.fd.get());
  return {};
}

Status FileStore::put(const Digest& key, const StoreEntry& entry) {
  if (impl_->options.directory.empty()) return {};
  if (entry.payload.empty())
    return Error{Code::invalid, "cache entry " + key.hex() + " has an empty payload; it is never published"};
  try {
    const std::uint64_t bytes = entry_header_bytes + entry.meta.size() + entry.payload.size();
    if (const std::uint64_t most = std::min(impl_->options.max_bytes, entry_max_bytes); bytes > most)
      return store_error("cache entry " + key.hex() + " has " + std::to_string(bytes) + " bytes, more than the " +
                         std::to_string(most) + " that one entry of this store may have (SLUICE_CACHE_MAX_MB)");
    const std::string image = encode_entry(impl_->options.kind, key, entry);
    int error = 0;
    Status done = impl_->put_once(key, image, error);
    if (!done.ok() && (error == ENOENT || error == ESTALE)) {  // the directory was removed or replaced meanwhile
      done = impl_->put_once(key, image, error);
      if (!done.ok() && (error == ENOENT || error == ESTALE))
        return impl_->put_failed("repeat", done.error().message, error);
    }
    if (done.ok()) impl_->account(bytes, key);
    return done;
  } catch (const std::exception& e) {
    return store_error(std::string("cache entry not written: ") + e.what());
  }
}

Status FileStore::writable() {
  if (impl_->options.directory.empty())
    return store_error("there is no cache directory: set SLUICE_CACHE_DIR, XDG_CACHE_HOME or HOME to an absolute path");
  try {
    const Directory root = impl_->open_root(Create::yes);
    if (!root.ok()) return impl_->put_failed("directory", root.problem, root.error);
    // tmp/ may be there already and writable where a new folder of entries could not be made.
    if (::faccessat(root.fd.get(), ".", W_OK, AT_EACCESS) != 0)
      return impl_->put_failed("directory", error_text(errno), errno);
    const Directory temporaries = open_child(root, impl_->options.directory, temporaries_name, Create::yes);
    if (!temporaries.ok()) return impl_->put_failed("directory", temporaries.problem, temporaries.error);
    int error = 0;
    const std::string name = std::to_string(::getpid()) + '-' + random_hex();
    Fd fd = open_at(temporaries.fd.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600, error);
    if (!fd.ok()) return impl_->put_failed("create", error_text(error), error);
    error = write_fully(fd.get(), name);
    if (error == 0) error = sync_fd(fd.get());
    if (const int closed = fd.close(); error == 0) error = closed;
    (void)::unlinkat(temporaries.fd.get(), name.c_str(), 0);
    if (error != 0) return impl_->put_failed("write", error_text(error), error);
    return {};
  } catch (const std::exception& e) {
    return store_error(std::string("cache directory not checked: ") + e.what());
  }
}

}  // namespace sl
