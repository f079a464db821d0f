#include "graph_onnx/model.hpp"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "graph/guard.hpp"
#include "graph_onnx/check.hpp"
#include "graph_onnx/model_impl.hpp"
#include "graph_onnx/planner.hpp"
#include "store/output_file.hpp"
#include "store/posix_io.hpp"

namespace sl::graph {
namespace {

namespace io = google::protobuf::io;

/// protobuf writes what it finds wrong to stderr; a library says it in its errors.
void quiet() { [[maybe_unused]] static const auto before = google::protobuf::SetLogHandler(nullptr); }

Error at(const std::string& origin, const Error& error) { return {error.code, origin + ": " + error.message}; }

Error cannot(const char* what, const std::string& path, int error) {
  return {Code::environment, std::string("cannot ") + what + " " + path + ": " + error_text(error)};
}

}  // namespace

OnnxModel::OnnxModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OnnxModel::~OnnxModel() = default;
OnnxModel::OnnxModel(OnnxModel&&) noexcept = default;
OnnxModel& OnnxModel::operator=(OnnxModel&&) noexcept = default;

Result<OnnxModel> OnnxModel::load(const std::string& path) {
  quiet();
  int error = 0;
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return cannot("read", path, errno);
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return cannot("read", path, errno);
  if (!S_ISREG(info.st_mode)) return Error{Code::environment, "cannot read " + path + ": it is no regular file"};
  if (info.st_size >= INT_MAX)
    return Error{Code::invalid,
                 path + ": has 2 GiB or more, which protobuf cannot hold; keep the weights in files beside it"};
  auto impl = std::make_unique<Impl>();
  impl->origin = path;
  io::FileInputStream stream(file.get());
  const bool parsed = impl->proto.ParseFromZeroCopyStream(&stream);
  error = stream.GetErrno();
  if (error != 0) return cannot("read", path, error);
  if (!parsed) return Error{Code::invalid, path + ": is not an ONNX model, or is cut short"};
  if (const Status status = check_model(impl->proto); !status.ok()) return at(path, status.error());
  return OnnxModel(std::move(impl));
}

Result<OnnxModel> OnnxModel::parse(std::string_view bytes, std::string origin) {
  quiet();
  auto impl = std::make_unique<Impl>();
  impl->origin = std::move(origin);
  if (bytes.size() >= INT_MAX || !impl->proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error{Code::invalid, impl->origin + ": is not an ONNX model, or is cut short"};
  if (const Status status = check_model(impl->proto); !status.ok()) return at(impl->origin, status.error());
  return OnnxModel(std::move(impl));
}

Outcome OnnxModel::replace(const OnnxOptions& options) {
  Outcome outcome;
  Result<std::unique_ptr<OnnxEditor>> editor = guarded([&] { return OnnxEditor::open(impl_->proto, options.batch); });
  if (editor.ok()) {
    outcome = replace_convolutions(**editor, options);
  } else {
    outcome.error.emplace();
    outcome.error->code = editor.error().code;
    outcome.error->message = editor.error().message;
  }
  if (outcome.error) outcome.error->message.insert(0, impl_->origin + ": ");
  return outcome;
}

std::string OnnxModel::bytes() const { return impl_->proto.SerializeAsString(); }

bool OnnxModel::has_external_data() const { return sl::graph::has_external_data(impl_->proto); }

Status OnnxModel::save(const std::string& path) const {
  SL_ASSIGN(const std::filesystem::path target, output_file(path));
  const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  if (impl_->proto.ByteSizeLong() >= INT_MAX)
    return Error{Code::invalid, path + ": would have 2 GiB or more, which protobuf cannot write"};
  const std::string temporary = folder + "/." + target.filename().string() + "." + random_hex();
  Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.ok()) return cannot("write", path, errno);
  io::FileOutputStream stream(file.get());
  int error = 0;
  if (!impl_->proto.SerializeToZeroCopyStream(&stream) || !stream.Flush())
    error = stream.GetErrno() != 0 ? stream.GetErrno() : EIO;
  if (error == 0) error = sync_fd(file.get());
  if (const int closed = file.close(); error == 0) error = closed;
  if (error == 0 && std::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(temporary.c_str());
  return cannot("write", path, error);
}

}  // namespace sl::graph
