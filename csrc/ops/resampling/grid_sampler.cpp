// Sampling images at the places of a grid, in two and three dimensions, and its backward.
#include <ATen/Context.h>
#include <ATen/native/GridSamplerUtils.h>
#include <ATen/ops/zeros.h>

#include "families/lines.h"
#include "families/program.h"
#include "families/spatial.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

using at::Tensor;

#define GRID_PARAMS                                                                                              \
  "channels in_d in_h in_w stride_n stride_c stride_d stride_h stride_w out_d out_h out_w grid_n grid_d grid_h " \
  "grid_w grid_axis result_n result_c result_d result_h result_w padding corners"
constexpr Program kForward = make_program("grid_sampler", "grid_sampler_forward", "T:input T:grid T:output!",
                                          GRID_PARAMS, "", "grid_sampler cubic fused");
constexpr Program kBackward =
    make_program("grid_sampler_backward", "grid_sampler_backward", "T:input T:grid T:gradient a:sums! T:grid_gradient!",
                 GRID_PARAMS, "", "grid_sampler cubic fused");
constexpr uint32_t kDeep = 4, kScatters = 8, kHalf = 16, kBFloat16 = 32;

struct Sampling {
  int64_t spatial, interpolation, padding;
  bool align_corners;

  uint32_t variant(at::ScalarType dtype) const {
    const uint32_t rounding = dtype == at::kHalf ? kHalf : dtype == at::kBFloat16 ? kBFloat16 : 0;
    return static_cast<uint32_t>(interpolation) | (spatial == 3 ? kDeep : 0) | rounding;
  }
};

void check(const Sampling& how, const char* kernel, const Tensor& input, const Tensor& grid) {
  at::native::check_grid_sampler_common(input, grid);
  if (how.spatial == 2) {
    at::native::check_grid_sampler_2d(input, grid);
  } else {
    at::native::check_grid_sampler_3d(input, grid, how.interpolation);
  }
  check_dtype(kernel, input.scalar_type(), {at::kFloat, at::kHalf, at::kBFloat16});
  TORCH_CHECK(input.scalar_type() == grid.scalar_type(), "expected scalar type ", input.scalar_type(), " but found ",
              grid.scalar_type());
}

// `result` is of the output's sizes.
void launch(const Program& program, const Sampling& how, uint32_t variant, const Tensor& given, const Tensor& grid,
            const Tensor& sampled, std::initializer_list<Tensor> operands) {
  const Tensor input = five_dims(given, how.spatial), result = five_dims(sampled, how.spatial),
               places = how.spatial == 3 ? grid : grid.unsqueeze(1);
  const int64_t work = input.size(1) * (int64_t{1} << how.spatial);
  run(program, at::kFloat, {result.size(0) * result.size(2) * result.size(3) * result.size(4), work}, operands,
      {input.size(1),    input.size(2),    input.size(3),    input.size(4),    input.stride(0),  input.stride(1),
       input.stride(2),  input.stride(3),  input.stride(4),  result.size(2),   result.size(3),   result.size(4),
       places.stride(0), places.stride(1), places.stride(2), places.stride(3), places.stride(4), result.stride(0),
       result.stride(1), result.stride(2), result.stride(3), result.stride(4), how.padding,      how.align_corners},
      variant);
}

Tensor forward(const Sampling& how, const char* kernel, const Tensor& input, const Tensor& grid) {
  check(how, kernel, input, grid);
  auto sizes = input.sizes().vec();
  std::copy_n(grid.sizes().begin() + 1, how.spatial, sizes.begin() + 2);
  // Halves are written as words and converted: their stores would share words.
  Tensor output = empty_tensor(sizes, {}, word_dtype(input.scalar_type()));
  if (output.numel() > 0)
    launch(kForward, how, how.variant(grid.scalar_type()), input, grid, output, {input, grid, output});
  return output.to(input.scalar_type());
}

std::tuple<Tensor, Tensor> backward(const Sampling& how, const char* kernel, const Tensor& grad_output,
                                    const Tensor& given, const Tensor& grid, std::array<bool, 2> wanted) {
  check(how, kernel, given, grid);
  if (wanted[0]) {  // the gradient of the grid is a sum in order
    at::Context::alertNotDeterministic(how.spatial == 2 ? "grid_sampler_2d_backward" : "grid_sampler_3d_backward");
  }
  const Tensor input = given.contiguous();
  Tensor sums =
      wanted[0] ? at::zeros(input.sizes(), input.options().dtype(at::kFloat)) : empty_tensor({1}, {}, at::kFloat);
  const auto float_type = word_dtype(grid.scalar_type());
  Tensor grid_gradient = empty_tensor(grid.sizes(), {}, float_type);
  if (grad_output.numel() == 0) {
    grid_gradient.zero_();
  } else {
    launch(kBackward, how, how.variant(grid.scalar_type()) | (wanted[0] ? kScatters : 0), input, grid, grad_output,
           {input, grid, grad_output, sums, grid_gradient});
  }
  return {wanted[0] ? sums.to(input.scalar_type()) : Tensor(), grid_gradient.to(grid.scalar_type())};
}

Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding,
                       bool align_corners) {
  return forward({2, interpolation, padding, align_corners}, "grid_sampler_2d_cpu_kernel_impl", input, grid);
}
Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding,
                       bool align_corners) {
  return forward({3, interpolation, padding, align_corners}, "grid_sampler3d_cpu", input, grid);
}
std::tuple<Tensor, Tensor> grid_sampler_2d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                                    int64_t interpolation, int64_t padding, bool align_corners,
                                                    std::array<bool, 2> wanted) {
  return backward({2, interpolation, padding, align_corners}, "grid_sampler_2d_backward_cpu_kernel_impl", grad_output,
                  input, grid, wanted);
}
std::tuple<Tensor, Tensor> grid_sampler_3d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                                    int64_t interpolation, int64_t padding, bool align_corners,
                                                    std::array<bool, 2> wanted) {
  return backward({3, interpolation, padding, align_corners}, "grid_sampler_3d_backward_cpu", grad_output, input, grid,
                  wanted);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&grid_sampler_2d>(library, "grid_sampler_2d");
  native<&grid_sampler_3d>(library, "grid_sampler_3d");
  native<&grid_sampler_2d_backward>(library, "grid_sampler_2d_backward");
  native<&grid_sampler_3d_backward>(library, "grid_sampler_3d_backward");
}

}  // namespace
}  // namespace torch_webgpu
