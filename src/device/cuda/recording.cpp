#include "device/cuda/recording.hpp"

namespace sl::cuda {
namespace {

class GraphRecording final : public Recording {
 public:
  explicit GraphRecording(ContextPtr context) : context_(std::move(context)) {}
  ~GraphRecording() override;
  Status capture(CUstream stream, const std::function<Status(Stream)>& body);
  Result<double> replay() override;

 private:
  Status check(const char* call, CUresult result) const {
    if (result == cuda_success) return {};
    return call_failed(context_->api(), std::string(call) + " on cuda:" + std::to_string(context_->ordinal()), result);
  }
  Status record_graph(const std::function<Status(Stream)>& body, CUgraph& graph);

  ContextPtr context_;
  CUstream stream_ = nullptr;
  bool own_stream_ = false;
  CUgraphExec exec_ = nullptr;
  CUevent start_ = nullptr, stop_ = nullptr;
};

/// Ends the capture if nobody did: a stream is not left capturing by a body that throws.
class CaptureEnd {
 public:
  CaptureEnd(const DriverApi& api, CUstream stream) : api_(api), stream_(stream) {}
  ~CaptureEnd() {
    CUgraph graph = nullptr;
    if (!ended_) end(graph);
    if (graph != nullptr) api_.graph_destroy(graph);
  }
  CaptureEnd(const CaptureEnd&) = delete;
  CaptureEnd& operator=(const CaptureEnd&) = delete;
  CUresult end(CUgraph& graph) {
    ended_ = true;
    return api_.stream_end_capture(stream_, &graph);
  }

 private:
  const DriverApi& api_;
  CUstream stream_;
  bool ended_ = false;
};

GraphRecording::~GraphRecording() {
  const CallScope scope(*context_);
  if (!scope.ok()) return;
  const DriverApi& api = context_->api();
  if (exec_ != nullptr) api.graph_exec_destroy(exec_);
  if (start_ != nullptr) api.event_destroy(start_);
  if (stop_ != nullptr) api.event_destroy(stop_);
  if (own_stream_) api.stream_destroy(stream_);
}

Status GraphRecording::record_graph(const std::function<Status(Stream)>& body, CUgraph& graph) {
  const DriverApi& api = context_->api();
  SL_TRY(check("cuStreamBeginCapture", api.stream_begin_capture(stream_, capture_relaxed)));
  CaptureEnd capture(api, stream_);
  SL_TRY(body(stream_));
  return check("cuStreamEndCapture", capture.end(graph));
}

Status GraphRecording::capture(CUstream stream, const std::function<Status(Stream)>& body) {
  const CallScope scope(*context_);
  SL_TRY(scope.status("record"));
  const DriverApi& api = context_->api();
  stream_ = stream;
  if (stream == nullptr) {
    SL_TRY(check("cuStreamCreate", api.stream_create(&stream_, stream_non_blocking)));
    own_stream_ = true;
  }
  SL_TRY(check("cuEventCreate", api.event_create(&start_, event_default)));
  SL_TRY(check("cuEventCreate", api.event_create(&stop_, event_default)));
  CUgraph graph = nullptr;
  Status status = record_graph(body, graph);
  if (status.ok()) status = check("cuGraphInstantiate", api.graph_instantiate(&exec_, graph, 0));
  if (graph != nullptr) api.graph_destroy(graph);
  if (status.ok()) status = check("cuGraphUpload", api.graph_upload(exec_, stream_));
  return status;
}

Result<double> GraphRecording::replay() {
  const CallScope scope(*context_);
  SL_TRY(scope.status("replay"));
  const DriverApi& api = context_->api();
  SL_TRY(check("cuEventRecord", api.event_record(start_, stream_)));
  SL_TRY(check("cuGraphLaunch", api.graph_launch(exec_, stream_)));
  SL_TRY(check("cuEventRecord", api.event_record(stop_, stream_)));
  SL_TRY(check("cuEventSynchronize", api.event_synchronize(stop_)));
  float milliseconds = 0;
  SL_TRY(check("cuEventElapsedTime", api.event_elapsed_time(&milliseconds, start_, stop_)));
  return double{milliseconds} * 1000.0;
}

}  // namespace

Result<std::unique_ptr<Recording>> record(const ContextPtr& context, CUstream stream,
                                          const std::function<Status(Stream)>& body) {
  auto recording = std::make_unique<GraphRecording>(context);
  SL_TRY(recording->capture(stream, body));
  return std::unique_ptr<Recording>(std::move(recording));
}

}  // namespace sl::cuda
