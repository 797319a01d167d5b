// PyTorch's own shape, dtype, out= and overlap rules for an op, with outputs made on this device.
#pragma once
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_native.h>

#include <array>

#include "families/tensor.h"

namespace torch_webgpu {

enum class Form { functional, inplace, out };

void check_inplace(const at::Tensor& self, at::IntArrayRef sizes, const at::TensorOptions& options);
void resize_out(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
                const at::TensorOptions& options);

// Meta is at::meta::structured_<op>: calling meta(...) on this object validates the arguments and fills `outputs`.
template <class Meta, size_t Outputs = 1>
struct Structured : Meta {
  explicit Structured(Form form) : form(form) {}

  const at::Tensor& maybe_get_output(int64_t index) override { return outputs[index]; }
  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options) override {
    set_output_raw_strided(index, sizes, strides, options);
  }
  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options) override {
    at::Tensor& output = outputs[index];
    if (form == Form::functional) {
      output = empty_tensor(sizes, strides, c10::typeMetaToScalarType(options.dtype()), options.memory_format_opt());
    } else if (form == Form::inplace) {
      check_inplace(output, sizes, options);
    } else {
      resize_out(output, sizes, strides, options);
    }
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Meta>) {
      at::TensorIteratorBase::set_output_raw_strided(index, sizes, strides, options);
    }
  }

  const Form form;
  std::array<at::Tensor, Outputs> outputs;
};

}  // namespace torch_webgpu
