#include "capi/null_device.hpp"

namespace sl::capi {
namespace {

Error off() { return {Code::environment, "Sluice is off (SLUICE_DISABLE or policy off): no device was opened"}; }

class NullDevice final : public Device {
 public:
  NullDevice() {
    info_.name = "none";
    info_.sm_count = 1;
  }
  const DeviceInfo& info() const override { return info_; }
  int ordinal() const override { return 0; }
  Status launch(const Kernel&, const Geometry&, const SlParams&, Stream) noexcept override {
    return Error{Code::environment, {}};
  }
  bool capturing(Stream) noexcept override { return false; }
  Result<std::shared_ptr<const Kernel>> load(const Binary&, int) override { return off(); }
  Result<std::unique_ptr<Buffer>> allocate(std::size_t) override { return off(); }
  Result<MemoryUse> memory() override { return off(); }
  Result<Stream> create_stream() override { return off(); }
  void destroy_stream(Stream) noexcept override {}
  Status synchronize(Stream) override { return off(); }
  Status copy_in(void*, const void*, std::size_t, Stream) override { return off(); }
  Status copy_out(void*, const void*, std::size_t, Stream) override { return off(); }
  Status copy(void*, const void*, std::size_t, Stream) override { return off(); }
  Status fill(void*, unsigned char, std::size_t, Stream) override { return off(); }
  Result<std::unique_ptr<Recording>> record(Stream, const std::function<Status(Stream)>&) override { return off(); }

 private:
  DeviceInfo info_;
};

class NullCompiler final : public Compiler {
 public:
  CompilerIdentity identity() const override { return {}; }
  Result<std::string> arch_for(const DeviceInfo&) override { return off(); }
  void compile(std::span<const KernelSpec> specs, const std::string&, int, const Done& done) override {
    for (std::size_t i = 0; i < specs.size(); ++i) done(i, off());
  }
  Result<std::string> version() override { return off(); }
};

}  // namespace

std::shared_ptr<Device> make_null_device() { return std::make_shared<NullDevice>(); }
std::shared_ptr<Compiler> make_null_compiler() { return std::make_shared<NullCompiler>(); }

}  // namespace sl::capi
