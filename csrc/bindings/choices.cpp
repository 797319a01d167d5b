// What torch_webgpu/tune/ needs: contests of kernels, and who won them.
#include "families/choices.h"

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "bindings/bindings.h"
#include "device/on_open.h"
#include "runtime/background.h"
#include "shader/wgsl_text.h"

namespace py = pybind11;

namespace torch_webgpu {
namespace {

// Operands that a launch does without are None.
using Tensors = std::vector<std::optional<at::Tensor>>;

void run(const Contest& contest, int64_t number, const Tensors& tensors, bool only_prepares) {
  std::vector<at::Tensor> operands;
  operands.reserve(tensors.size());
  for (const auto& tensor : tensors) operands.push_back(tensor.value_or(at::Tensor()));
  const Forced forced(contest.key, number, only_prepares);
  contest.run(operands);
}

std::vector<Contest> contests_of(const std::function<void()>& call) {
  Contests contests;
  call();
  return contests.take();
}

// Python functions, which no thread may call after stop_tuning(). They are never freed.
py::function* opened = nullptr;
py::function* tuner = nullptr;

void call(const py::function& function) {
  const py::gil_scoped_acquire gil;
  try {
    function();
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("torch_webgpu.tune");
  }
}

// The thread that times kernels, while there are any to be timed.
class Tuner {
 public:
  void wake() {
    const std::lock_guard guard(mutex_);
    wanted_ = true;
    if (active_ || stopped_) return;
    if (thread_.joinable()) thread_.join();
    active_ = true;
    thread_ = std::thread([this] { work(); });
  }
  void stop() {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    idle_.wait(lock, [this] { return !active_; });
    if (thread_.joinable()) thread_.join();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return !active_; });
  }

 private:
  void work() {
    leaves_errors = true;
    std::unique_lock lock(mutex_);
    while (std::exchange(wanted_, false) && !stopped_) {
      lock.unlock();
      call(*tuner);
      lock.lock();
    }
    active_ = false;
    idle_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable idle_;
  std::thread thread_;
  bool wanted_ = false, active_ = false, stopped_ = false;
};

Tuner& tuner_thread() {
  static auto* instance = new Tuner;  // outlives static destruction
  return *instance;
}

}  // namespace

void bind_choices(py::module& m) {
  const auto without_gil = py::call_guard<py::gil_scoped_release>();
  py::class_<Contest::Kernel>(m, "ContestKernel")
      .def_readonly("number", &Contest::Kernel::number)
      .def_readonly("name", &Contest::Kernel::name);
  py::class_<Contest>(m, "Contest")
      .def_property_readonly("family", [](const Contest& contest) { return contest.family; })
      .def_readonly("key", &Contest::key)
      .def_readonly("kernels", &Contest::kernels)
      .def_readonly("reference", &Contest::reference)
      .def_readonly("outputs", &Contest::outputs)
      .def_property_readonly("text", &Contest::text)
      .def_property_readonly("size_bytes", &Contest::size_bytes)
      .def("scratch", &Contest::scratch, without_gil)
      .def(
          "run", [](const Contest& one, int64_t number, const Tensors& on) { run(one, number, on, false); },
          py::arg("number"), py::arg("tensors"), without_gil)
      .def(
          "prepare", [](const Contest& one, int64_t number, const Tensors& on) { run(one, number, on, true); },
          py::arg("number"), py::arg("tensors"), without_gil, "Compiles the kernel; raises what is wrong with it.");
  m.def("contests_of", &contests_of, py::arg("call"),
        "One for each kind of launch that the call makes, if it chooses.");
  m.def("next_contest", &next_contest);
  m.def("set_choice", &set_choice, py::arg("key"), py::arg("number"));
  m.def(
      "start_choices",
      [](uint64_t work, py::function tune) {
        if (!tuner) tuner = new py::function(std::move(tune));
        start_choices(work, [] { tuner_thread().wake(); });
      },
      py::arg("work"), py::arg("tune"));
  m.def(
      "stop_tuning",
      [] {
        stop_choices();
        if (!in_bad_fork()) tuner_thread().stop();
      },
      without_gil);
  m.def("wait_for_tuning", [] { tuner_thread().wait(); }, without_gil);
  m.def(
      "on_open",
      [](py::function function) {
        if (!opened) opened = new py::function(std::move(function));
        on_open([] { call(*opened); });
      },
      py::arg("function"));
  m.def("kernels_hash", &kernels_hash);
}

}  // namespace torch_webgpu
