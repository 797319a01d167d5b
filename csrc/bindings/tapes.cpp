// _C.RecordedFunction: a Python function of a list of arguments whose calls are recorded once per layout and replayed.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>

#include "bindings/bindings.h"
#include "device/recorded_call.h"

namespace py = pybind11;

namespace torch_webgpu {
namespace {

constexpr size_t kMostRecordings = 64;  // per function; a function of more layouts is called as it is
constexpr size_t kMostOfNumbers = 4;    // per function, of layouts with values: such a value may change in each call

class RecordedFunction {
 public:
  RecordedFunction(py::function function, std::vector<at::Tensor> constants, bool fixed)
      : function_(std::move(function)), constants_(std::move(constants)), fixed_(fixed) {}

  // As the functions that Inductor makes: takes the arguments out of the list, so that their memory can be reused.
  py::object call(py::list given) {
    Arguments arguments;
    if (!unpack(given, arguments)) return function_(given);
    for (auto& entry : entries_) {
      if (entry.layout.holds(arguments)) {
        return entry.call ? replay(entry, given, arguments) : py::object(function_(given));
      }
    }
    if (entries_.size() == kMostRecordings) return function_(given);
    return record(given, arguments);
  }

  size_t recordings() const {
    return std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.call != nullptr; });
  }
  std::vector<std::string> failures() const {
    std::vector<std::string> found;
    for (const auto& entry : entries_) {
      if (!entry.call) found.push_back(entry.failure);
    }
    return found;
  }
  uint64_t replays() const { return replays_; }

 private:
  struct Entry {
    Layout layout;
    std::unique_ptr<RecordedCall> call;  // null where the call could not be recorded
    std::string failure;
    std::vector<py::object> others;  // the results that are no tensors, with None for tensors
  };

  static bool unpack(const py::list& given, Arguments& arguments) {
    for (const auto& item : given) {
      if (THPVariable_Check(item.ptr())) {
        arguments.push_back({&THPVariable_Unpack(item.ptr()), 0});
      } else if (PyLong_CheckExact(item.ptr())) {
        arguments.push_back({nullptr, PyLong_AsLongLong(item.ptr())});
      } else {
        return false;
      }
    }
    return true;
  }

  py::object replay(Entry& entry, py::list& given, const Arguments& arguments) {
    std::vector<std::optional<at::Tensor>> results;
    if (fixed_) {
      results = entry.call->replay(arguments);  // one at a time: they share buffers
    } else {
      const py::gil_scoped_release release;
      results = entry.call->replay(arguments);
    }
    ++replays_;
    py::tuple tuple(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      PyObject* item = results[i] ? THPVariable_Wrap(std::move(*results[i])) : entry.others[i].inc_ref().ptr();
      PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), item);
    }
    given.attr("clear")();
    return tuple;
  }

  py::object record(py::list& given, const Arguments& arguments) {
    auto layout = Layout::of(arguments);
    if (!layout || (layout->has_host_numbers() && of_numbers_++ >= kMostOfNumbers)) return function_(given);
    auto call = std::make_unique<RecordedCall>(arguments, constants_, fixed_);
    if (!call->begin()) return function_(given);
    py::object results;
    try {
      results = function_(given);
    } catch (...) {
      call->cancel();
      throw;
    }
    Entry entry{std::move(*layout), nullptr, {}, {}};
    std::vector<std::optional<at::Tensor>> tensors;
    for (const auto& result : results) {
      const bool is_tensor = THPVariable_Check(result.ptr());
      tensors.push_back(is_tensor ? std::optional(THPVariable_Unpack(result.ptr())) : std::nullopt);
      entry.others.push_back(is_tensor ? py::object(py::none()) : py::reinterpret_borrow<py::object>(result));
    }
    if (call->end(tensors)) {
      const auto any_value = call->random_arguments();
      for (const uint32_t argument : any_value) entry.layout.allow_any_value(argument);
      if (!any_value.empty() && !entry.layout.has_host_numbers()) --of_numbers_;
      entry.call = std::move(call);
    } else {
      entry.failure = call->failure();
    }
    entries_.push_back(std::move(entry));
    return results;
  }

  py::function function_;
  std::vector<at::Tensor> constants_;
  const bool fixed_;
  std::vector<Entry> entries_;
  uint64_t replays_ = 0;
  size_t of_numbers_ = 0;
};

}  // namespace

void bind_tapes(py::module& m) {
  py::class_<RecordedFunction>(m, "RecordedFunction")
      .def(py::init<py::function, std::vector<at::Tensor>, bool>(), py::arg("function"),
           py::arg("constants") = std::vector<at::Tensor>{}, py::arg("fixed") = false,
           "With `fixed`, replays keep their buffers instead of allocating them each time.")
      .def("__call__", &RecordedFunction::call)
      .def_property_readonly("recordings", &RecordedFunction::recordings)
      .def_property_readonly("replays", &RecordedFunction::replays)
      .def_property_readonly("failures", &RecordedFunction::failures,
                             "Why calls of some layouts run as they are, one reason each.");
}

}  // namespace torch_webgpu
