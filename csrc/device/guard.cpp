// Devices, streams and events as c10 asks for them: one device, one stream, events that record, wait and time.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "device/context.h"

namespace torch_webgpu {
namespace {

c10::Stream only_stream() { return c10::Stream(c10::Stream::DEFAULT, kDevice); }

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDeviceType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    check_ordinal(device.index());
    return kDevice;
  }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device device) const override { check_ordinal(device.index()); }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return is_available() ? 1 : 0; }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability result;
    auto& types = result.capability_data.supported_scalar_types;
    types.has_Double = types.has_ComplexDouble = types.has_ComplexHalf = false;  // stored, but not computed with
    return result;
  }

  c10::Stream getStream(c10::Device) const override { return only_stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return only_stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return only_stream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return only_stream(); }
  c10::Stream exchangeStream(c10::Stream) const override { return only_stream(); }
  bool queryStream(const c10::Stream&) const override { return !is_open() || runtime().stream.is_idle(); }
  void synchronizeStream(const c10::Stream&) const override { synchronizeDevice(0); }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    check_ordinal(index);
    if (is_open()) waiting([] { runtime().stream.synchronize(); });
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag flag) const override {
    check_ordinal(stream.device_index());
    if (!*event) *event = new Event(flag == c10::EventFlag::BACKEND_DEFAULT);
    runtime().stream.record(*static_cast<Event*>(*event));
  }
  void block(void*, const c10::Stream&) const override {}  // the one stream is in order already
  bool queryEvent(void* event) const override {
    return !event || runtime().stream.is_complete(*static_cast<Event*>(event));
  }
  void synchronizeEvent(void* event) const override {
    if (event) runtime().stream.wait(*static_cast<Event*>(event));
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    TORCH_CHECK(from && to, "Both events must be recorded before calculating elapsed time.");
    auto &first = *static_cast<Event*>(from), &second = *static_cast<Event*>(to);
    TORCH_CHECK(first.timing && second.timing, "Both events must be created with argument 'enable_timing=True'.");
    TORCH_CHECK(runtime().stream.is_complete(first) && runtime().stream.is_complete(second),
                "Both events must be completed before calculating elapsed time.");
    return runtime().stream.elapsed_ms(first, second);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    auto* gone = static_cast<Event*>(event);
    if (!gone) return;
    if (is_open()) runtime().stream.forget(*gone);
    delete gone;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace
}  // namespace torch_webgpu
