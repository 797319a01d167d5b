// torch.profiler: every dispatch as an activity of the device, linked to the operation that ran it.
#define FMT_HEADER_ONLY  // Kineto's headers call fmt, and the wheel has no library of it
#define USE_KINETO       // the wheel has Kineto; its header asks whether PyTorch was built with it
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <chrono>

#include "device/context.h"
#include "runtime/profile.h"

namespace torch_webgpu {
namespace {

using libkineto::ActivityType;

// Kineto's times are the system clock's.
int64_t system_minus_steady_ns() {
  const auto ns = [](auto since) { return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count(); };
  return ns(std::chrono::system_clock::now().time_since_epoch()) -
         ns(std::chrono::steady_clock::now().time_since_epoch());
}

// The operations that this thread is in, innermost last.
thread_local std::vector<uint64_t> running;

class Session final : public libkineto::IActivityProfilerSession {
 public:
  void start() override {
    attempt([&] { profile_.start(); });
    status_ = libkineto::TraceStatus::RECORDING;
  }
  void stop() override {
    attempt([&] { profile_.stop(is_open() ? &runtime().stream : nullptr); });
    Profile::set_correlation(0);
    status_ = libkineto::TraceStatus::PROCESSING;
  }
  std::vector<std::string> errors() override { return errors_; }

  void processTrace(libkineto::ActivityLogger& logger) override {
    process(logger, [](int32_t) { return nullptr; });
  }
  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked, int64_t,
                    int64_t) override {
    process(logger, linked);
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    if (!is_open()) return nullptr;
    return std::make_unique<libkineto::DeviceInfo>(
        libkineto::DeviceInfo{0, libkineto::kExceedMaxPid, "webgpu:0", runtime().device.info.name});
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {{0, 0, 0, "stream"}}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }

  void pushCorrelationId(uint64_t id) override {
    running.push_back(id);
    Profile::set_correlation(id);
  }
  void popCorrelationId() override {
    if (!running.empty()) running.pop_back();
    Profile::set_correlation(running.empty() ? 0 : running.back());
  }

 private:
  template <class Call>
  void attempt(const Call& call) {
    try {
      call();
    } catch (const std::exception& error) {
      errors_.emplace_back(error.what());
    }
  }

  void process(libkineto::ActivityLogger& logger, const libkineto::getLinkedActivityCallback& linked) {
    const int64_t shift = system_minus_steady_ns();
    buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer_->span.name = "webgpu";
    for (const auto& dispatch : profile_.dispatches()) {
      if (dispatch.device_ns < 0) continue;
      buffer_->emplace_activity(buffer_->span, ActivityType::CONCURRENT_KERNEL, *dispatch.label);
      auto& activity = *buffer_->activities.back();
      activity.startTime = dispatch.device_begin_ns + shift;
      activity.endTime = activity.startTime + dispatch.device_ns;
      activity.id = static_cast<int32_t>(dispatch.correlation);
      activity.linked = linked(activity.id);
      const auto& [x, y, z] = dispatch.grid;
      activity.addMetadata("grid", "[" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + "]");
      logger.handleGenericActivity(activity);
    }
  }

  Profile profile_;
  std::vector<std::string> errors_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return activities_; }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType>& wanted,
                                                                 const libkineto::Config&) override {
    if (wanted.count(ActivityType::CONCURRENT_KERNEL) == 0) return nullptr;
    return std::make_unique<Session>();
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t, int64_t, const std::set<ActivityType>& wanted,
                                                                 const libkineto::Config& config) override {
    return configure(wanted, config);
  }

 private:
  const std::string name_ = "webgpu";
  const std::set<ActivityType> activities_{ActivityType::CONCURRENT_KERNEL};
};

REGISTER_PRIVATEUSE1_PROFILER(Profiler);

}  // namespace
}  // namespace torch_webgpu
