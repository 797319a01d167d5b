// Max unpooling: every element back to the place its pooling took it from, zeros elsewhere.
#include <ATen/Context.h>

#include "families/spatial.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using at::IntArrayRef;
using at::Tensor;

// The places are within a dense plane of `out`.
void unpool(const Tensor& input, const Tensor& indices, int64_t spatial, const Tensor& out) {
  out.zero_();
  if (input.numel() == 0 || out.numel() == 0) return;
  const Tensor dense = out.is_contiguous() ? out : out.contiguous();
  dense.flatten(-spatial).scatter_(-1, indices.flatten(-spatial), input.flatten(-spatial));
  if (!dense.is_same(out)) out.copy_(dense);
}

void check_unpool(const char* name, const char* kernel, int64_t spatial, const Tensor& input, const Tensor& indices) {
  TORCH_CHECK(input.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (",
              input.sizes(), ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t i = 1; i < input.dim(); ++i) {
    TORCH_CHECK(input.size(i) > 0, name, "(): Expected input to have non-zero size for non-batch dimensions, but got ",
                input.sizes(), " with dimension ", i, " being empty.");
  }
  if (input.numel() > 0) check_dtype(kernel, input.scalar_type(), {at::kFloat, at::kHalf, at::kBFloat16});
  at::Context::alertNotDeterministic(spatial == 2 ? "max_unpooling2d_forward_out" : "max_unpooling3d_forward_out");
}

Tensor& max_unpool2d_out(const Tensor& input, const Tensor& indices, IntArrayRef size, Tensor& out) {
  TORCH_CHECK(indices.scalar_type() == at::kLong,
              "elements in indices should be type int64 but got: ", indices.scalar_type());
  TORCH_CHECK(size.size() == 2, "There should be exactly two elements (height, width) in output_size, but got ",
              size.size(), " elements.");
  TORCH_CHECK(input.dim() == 3 || input.dim() == 4,
              "Input to max_unpooling2d should be a 3d or 4d Tensor, but got a tensor with ", input.dim(),
              " dimensions.");
  check_unpool("max_unpooling2d", "max_unpool2d", 2, input, indices);
  auto sizes = input.sizes().vec();
  std::copy(size.begin(), size.end(), sizes.end() - 2);
  out.resize_(sizes, input.dim() == 4 ? input.suggest_memory_format() : at::MemoryFormat::Contiguous);
  unpool(input, indices, 2, out);
  return out;
}

Tensor max_unpool2d(const Tensor& input, const Tensor& indices, IntArrayRef size) {
  Tensor out = empty_tensor({0}, {}, input.scalar_type());
  return max_unpool2d_out(input, indices, size, out);
}

Tensor& max_unpool3d_out(const Tensor& input, const Tensor& indices, IntArrayRef size, IntArrayRef stride,
                         IntArrayRef padding, Tensor& out) {
  TORCH_CHECK(indices.scalar_type() == at::kLong, "elements in indices should be type int64");
  TORCH_CHECK(input.dim() == 4 || input.dim() == 5,
              "Input to max_unpooling3d should be a 4d or 5d Tensor, but got a tensor with ", input.dim(),
              " dimensions.");
  TORCH_CHECK(size.size() == 3,
              "There should be exactly three elements (depth, height, width) in output_size, but got ", size.size(),
              " elements.");
  TORCH_CHECK(stride.size() == 3,
              "There should be exactly three elements (depth, height, width) in stride, but got: ", stride.size(),
              " elements.");
  TORCH_CHECK(padding.size() == 3,
              "There should be exactly three elements (depth, height, width) in padding, but got: ", padding.size(),
              " elements.");
  check_unpool("max_unpooling3d", "max_unpool3d", 3, input, indices);
  TORCH_CHECK(stride[0] > 0 && stride[1] > 0 && stride[2] > 0,
              "strides should be greater than zero, but got stride: ", stride);
  auto sizes = input.sizes().vec();
  std::copy(size.begin(), size.end(), sizes.end() - 3);
  out.resize_(sizes);
  unpool(input, indices, 3, out);
  return out;
}

Tensor max_unpool3d(const Tensor& input, const Tensor& indices, IntArrayRef size, IntArrayRef stride,
                    IntArrayRef padding) {
  Tensor out = empty_tensor({0}, {}, input.scalar_type());
  return max_unpool3d_out(input, indices, size, stride, padding, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&max_unpool2d>(library, "max_unpool2d");
  native<&max_unpool2d_out>(library, "max_unpool2d.out");
  native<&max_unpool3d>(library, "max_unpool3d");
  native<&max_unpool3d_out>(library, "max_unpool3d.out");
}

}  // namespace
}  // namespace torch_webgpu
