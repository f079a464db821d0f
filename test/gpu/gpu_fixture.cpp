#include "gpu_fixture.hpp"

#include <cstdlib>

namespace sl::test {
namespace {

// What is tested here is what is to be listed as having passed; set before any test makes a context.
[[maybe_unused]] const int untested_too = setenv("SLUICE_SANITIZED", "all", 0);

Machine* open_machine() {
  auto* const machine = new Machine;
  auto environment = read_environment();
  if (!environment.ok()) {
    machine->no_device = environment.error().message;
    return machine;
  }
  machine->environment = *environment;
  auto device = open_cuda_device(0, machine->environment, machine->log);
  if (!device.ok()) {
    machine->no_device = device.error().message;
    return machine;
  }
  machine->device = *device;
  std::shared_ptr<Compiler> compiler = make_nvrtc_compiler(machine->environment, machine->log);
  if (!compiler->identity().available) machine->no_compiler = compiler->identity().why_not;
  machine->cache = std::make_shared<BinaryCache>(std::move(compiler), nullptr, machine->log);
  return machine;
}

}  // namespace

Machine& machine() {
  static Machine* const machine = open_machine();
  return *machine;
}

KernelSpec testing_spec(const std::string& name, std::vector<std::pair<std::string, std::int64_t>> constants) {
  KernelSpec spec;
  spec.schedule = "testing_" + name;
  spec.source = "testing/memory.cuh";
  spec.constants = std::move(constants);
  spec.threads = 64;
  return spec;
}

std::shared_ptr<const Kernel> load(const KernelSpec& spec, int dynamic_smem) {
  const auto binary = machine().cache->get({&spec, 1}, machine().device->info(), 1)[0];
  if (!binary.ok()) {
    ADD_FAILURE() << binary.error().message;
    return nullptr;
  }
  auto kernel = machine().device->load(**binary, dynamic_smem);
  if (!kernel.ok()) {
    ADD_FAILURE() << kernel.error().message;
    return nullptr;
  }
  return *kernel;
}

}  // namespace sl::test
