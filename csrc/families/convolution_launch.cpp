#include "families/convolution_launch.h"

#include "families/lines.h"

namespace torch_webgpu {

KernelSource print_convolution_launch(const Launch& launch) {
  const auto spec = spec_of<ConvolutionSpec>(launch);
  return {label_convolution(spec), print_convolution(spec, target(), pages_of(launch))};
}

at::Tensor pack_weight(const at::Tensor& tensor, const Weight& weight, int64_t groups, at::ScalarType dtype) {
  const auto& k = weight.kernel;
  const auto& by = weight.kernel_stride;
  const at::Tensor packed =
      empty_tensor({groups, k[0], k[1], k[2], weight.channels, ceil_div(weight.rows, 4) * 4}, {}, dtype);
  packed.narrow(5, 0, weight.rows)
      .copy_(tensor.as_strided({groups, k[0], k[1], k[2], weight.channels, weight.rows},
                               {weight.group_stride, by[0], by[1], by[2], weight.channel_stride, weight.row_stride}));
  return packed;
}

at::Tensor words_like(const at::Tensor& out) {
  const at::ScalarType dtype = word_dtype(out.scalar_type());
  return dtype == out.scalar_type() ? out : empty_tensor(out.sizes(), out.strides(), dtype);
}

}  // namespace torch_webgpu
