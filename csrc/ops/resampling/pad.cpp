// Reflection and replication padding of one, two and three dimensions, and their backwards.
#include <ATen/native/Padding.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/reflection_pad1d_backward_meta.h>
#include <ATen/ops/reflection_pad1d_meta.h>
#include <ATen/ops/reflection_pad3d_backward_meta.h>
#include <ATen/ops/reflection_pad3d_meta.h>
#include <ATen/ops/replication_pad1d_backward_meta.h>
#include <ATen/ops/replication_pad1d_meta.h>
#include <ATen/ops/replication_pad2d_meta.h>
#include <ATen/ops/replication_pad3d_meta.h>

#include "families/spatial.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

#define PADDED(mirrors) \
  "return load1(i1 + source(d0, 0u, " mirrors ") + source(d1, 1u, " mirrors ") + source(d2, 2u, " mirrors "));"
constexpr IndexedRow kReflect{"reflection_pad", PADDED("true"), IndexedRow::raw, 2, 1, "pad"};
constexpr IndexedRow kReplicate{"replication_pad", PADDED("false"), IndexedRow::raw, 2, 1, "pad"};
constexpr IndexedRow kReflectBackward{
    "reflection_pad_backward", "return sum_images(i1, d0, d1, d2, true);", 0, 2, 1, "pad_backward"};
constexpr IndexedRow kReplicateBackward{
    "replication_pad_backward", "return sum_images(i1, d0, d1, d2, false);", 0, 2, 1, "pad_backward"};

enum class Mode { reflect, replicate };

// `inner` is the tensor without padding, `outer` the one with it.
void describe(Indexed& launch, const at::Tensor& inner, const at::Tensor& outer, const at::Tensor& read,
              at::IntArrayRef padding) {
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto dim = static_cast<int64_t>(4 - axis);
    launch.extra(2 * axis < padding.size() ? padding[2 * axis] : 0)
        .extra(inner.size(dim))
        .extra(read.stride(dim))
        .extra(outer.size(dim));
  }
}

void pad(Mode mode, const at::Tensor& input, at::IntArrayRef padding, const at::Tensor& output) {
  if (output.numel() == 0) return;
  const auto padded = static_cast<int64_t>(padding.size() / 2);
  const at::Tensor inner = five_dims(input, padded), outer = five_dims(output, padded);
  Indexed launch(mode == Mode::reflect ? kReflect : kReplicate);
  launch.iterate(outer.sizes())
      .operand(outer, outer.strides())
      .operand(inner, {inner.stride(0), inner.stride(1), 0, 0, 0});
  describe(launch, inner, outer, inner, padding);
  launch.run();
}

void pad_backward(Mode mode, const at::Tensor& grad_output, at::IntArrayRef padding, const at::Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  const auto padded = static_cast<int64_t>(padding.size() / 2);
  const at::Tensor inner = five_dims(grad_input, padded), outer = five_dims(grad_output, padded);
  Indexed launch(mode == Mode::reflect ? kReflectBackward : kReplicateBackward, grad_output.scalar_type());
  launch.iterate(inner.sizes())
      .operand(inner, inner.strides())
      .operand(outer, {outer.stride(0), outer.stride(1), 0, 0, 0});
  describe(launch, inner, outer, outer, padding);
  launch.run();
}

template <class Meta, Mode mode>
struct Pad {
  static void run(Structured<Meta>& op, const at::Tensor& input, at::IntArrayRef padding) {
    op.meta(input, padding);
    if (op.form == Form::functional) {
      // PyTorch leaves it to each device whether the result is channels_last; on the CPU it is as the input.
      op.outputs[0].unsafeGetTensorImpl()->empty_tensor_restride(input.suggest_memory_format());
    }
    pad(mode, input, padding, op.outputs[0]);
  }
};

template <class Meta, Mode mode>
struct PadBackward {
  static void run(Structured<Meta>& op, const at::Tensor& grad, const at::Tensor& input, at::IntArrayRef padding) {
    op.meta(grad, input, padding);
    pad_backward(mode, grad, padding, op.outputs[0]);
  }
};

at::Tensor& reflection_pad2d_out(const at::Tensor& input, at::IntArrayRef padding, at::Tensor& out) {
  at::native::padding::check_valid_input<2>(input, padding);
  const int64_t rank = input.dim(), height = input.size(-2), width = input.size(-1);
  TORCH_CHECK(padding[0] < width && padding[1] < width,
              "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (",
              padding[0], ", ", padding[1], ") at dimension ", rank - 1, " of input ", input.sizes());
  TORCH_CHECK(padding[2] < height && padding[3] < height,
              "Argument #6: Padding size should be less than the corresponding input dimension, but got: padding (",
              padding[2], ", ", padding[3], ") at dimension ", rank - 2, " of input ", input.sizes());
  auto sizes = input.sizes().vec();
  sizes[rank - 2] += padding[2] + padding[3];
  sizes[rank - 1] += padding[0] + padding[1];
  TORCH_CHECK(sizes[rank - 1] >= 1 || sizes[rank - 2] >= 1, "input (H: ", height, ", W: ", width,
              ") is too small. Calculated output H: ", sizes[rank - 2], " W: ", sizes[rank - 1]);
  if (rank == 4) {
    out.resize_(sizes, input.suggest_memory_format());
  } else {
    out.resize_(sizes);
  }
  pad(Mode::reflect, input, padding, out);
  return out;
}

at::Tensor reflection_pad2d(const at::Tensor& input, at::IntArrayRef padding) {
  at::Tensor out = empty_tensor({0}, {}, input.scalar_type());
  return reflection_pad2d_out(input, padding, out);
}

// Backwards that PyTorch does not have as structured ops.
template <Mode mode, int64_t padded>
struct PlainBackward {
  static at::Tensor& out(const at::Tensor& grad, const at::Tensor& input, at::IntArrayRef padding, at::Tensor& out) {
    TORCH_CHECK(padding.size() == 2 * padded, "padding size is expected to be ", 2 * padded,
                ", but got: ", padding.size());
    const char* const names[] = {"width", "height", "depth"};
    for (int64_t axis = 0; axis < padded; ++axis) {
      const int64_t expected = input.size(-1 - axis) + padding[2 * axis] + padding[2 * axis + 1];
      TORCH_CHECK(expected == grad.size(-1 - axis), "gradOutput ", names[axis], " unexpected. Expected: ", expected,
                  ", Got: ", grad.size(-1 - axis));
    }
    out.resize_as_(input);
    pad_backward(mode, grad, padding, out);
    return out;
  }
  static at::Tensor functional(const at::Tensor& grad, const at::Tensor& input, at::IntArrayRef padding) {
    at::Tensor result = at::empty_like(input, at::MemoryFormat::Preserve);
    return out(grad, input, padding, result);
  }
};

#define PAD(name, mode)                                                                     \
  native<&Forms<Pad<at::meta::structured_##name, mode>>::functional, kAny>(library, #name); \
  native<&Forms<Pad<at::meta::structured_##name, mode>>::out, kAny>(library, #name ".out")
#define PAD_BACKWARD(name, mode)                                                              \
  native<&Forms<PadBackward<at::meta::structured_##name, mode>>::functional>(library, #name); \
  native<&Forms<PadBackward<at::meta::structured_##name, mode>>::out>(library, #name ".grad_input")
#define PLAIN_BACKWARD(name, mode, padded)                          \
  native<&PlainBackward<mode, padded>::functional>(library, #name); \
  native<&PlainBackward<mode, padded>::out>(library, #name ".grad_input")

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  PAD(reflection_pad1d, Mode::reflect);
  PAD(reflection_pad3d, Mode::reflect);
  PAD(replication_pad1d, Mode::replicate);
  PAD(replication_pad2d, Mode::replicate);
  PAD(replication_pad3d, Mode::replicate);
  native<&reflection_pad2d, kAny>(library, "reflection_pad2d");
  native<&reflection_pad2d_out, kAny>(library, "reflection_pad2d.out");
  PAD_BACKWARD(reflection_pad1d_backward, Mode::reflect);
  PAD_BACKWARD(reflection_pad3d_backward, Mode::reflect);
  PAD_BACKWARD(replication_pad1d_backward, Mode::replicate);
  PLAIN_BACKWARD(reflection_pad2d_backward, Mode::reflect, 2);
  PLAIN_BACKWARD(replication_pad2d_backward, Mode::replicate, 2);
  PLAIN_BACKWARD(replication_pad3d_backward, Mode::replicate, 3);
}

}  // namespace
}  // namespace torch_webgpu
