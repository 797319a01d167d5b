// The hooks through which ATen reaches the device.
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "device/context.h"
#include "device/generator.h"
#include "device/host_allocator.h"
#include "device/storage.h"

namespace torch_webgpu {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return is_available(); }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return is_open(); }
  void init() const override {}  // the first tensor opens the device; pin_memory() alone needs none
  c10::DeviceIndex deviceCount() const override { return is_available() ? 1 : 0; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex index) const override { check_ordinal(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    setCurrentDevice(index);
    return 0;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  at::Device getDeviceFromPtr(void*) const override { return kDevice; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return host_allocator(); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return default_generator(); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    check_ordinal(index);
    return at::Generator(c10::make_intrusive<Generator>(c10::default_rng_seed_val));
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size_bytes) const override {
    resize_storage(*storage.unsafeGetStorageImpl(), size_bytes);
  }
};

const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace
}  // namespace torch_webgpu
