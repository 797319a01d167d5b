// Sliding windows as columns and back: im2col, col2im.
#include <ATen/native/Resize.h>
#include <ATen/native/im2col_shape_check.h>

#include "families/indexed.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

// Coordinates: window's x and y, kernel's x and y, channel, batch. x: height, width, strides of the image by row and
// column, then for y and x in turn step, padding and dilation.
constexpr IndexedRow kIm2col{"im2col",
                             "let row = i32(d1 * x(4u) + d3 * x(6u)) - i32(x(5u));"
                             "let column = i32(d0 * x(7u) + d2 * x(9u)) - i32(x(8u));"
                             "if (row < 0 || column < 0 || row >= i32(x(0u)) || column >= i32(x(1u))) { return V(); }"
                             "return load1(i1 + u32(row) * x(2u) + u32(column) * x(3u));",
                             IndexedRow::raw};
// Coordinates: x, y, channel, batch of the image. x: kernel's height and width, windows in a column and in a row,
// stride of the columns by kernel element and by window, then for y and x step, padding and dilation.
constexpr IndexedRow kCol2im{
    "col2im",
    "var sum = T();"
    "for (var ky = 0u; ky < x(0u); ky++) {"
    "  let top = i32(d1 + x(7u)) - i32(ky * x(8u));"
    "  if (top < 0 || top % i32(x(6u)) != 0 || top / i32(x(6u)) >= i32(x(2u))) { continue; }"
    "  for (var kx = 0u; kx < x(1u); kx++) {"
    "    let left = i32(d0 + x(10u)) - i32(kx * x(11u));"
    "    if (left < 0 || left % i32(x(9u)) != 0 || left / i32(x(9u)) >= i32(x(3u))) { continue; }"
    "    let window = u32(top / i32(x(6u))) * x(3u) + u32(left / i32(x(9u)));"
    "    sum = add(sum, load1(i1 + (ky * x(1u) + kx) * x(4u) + window * x(5u)));"
    "  }"
    "} return sum;"};

void check_pairs(at::IntArrayRef kernel, at::IntArrayRef dilation, at::IntArrayRef padding, at::IntArrayRef stride) {
  TORCH_CHECK(kernel.size() == 2, "It is expected kernel_size equals to 2, but got size ", kernel.size());
  TORCH_CHECK(dilation.size() == 2, "It is expected dilation equals to 2, but got size ", dilation.size());
  TORCH_CHECK(padding.size() == 2, "It is expected padding equals to 2, but got size ", padding.size());
  TORCH_CHECK(stride.size() == 2, "It is expected stride equals to 2, but got size ", stride.size());
}

at::Tensor& im2col_out(const at::Tensor& given, at::IntArrayRef kernel, at::IntArrayRef dilation,
                       at::IntArrayRef padding, at::IntArrayRef stride, at::Tensor& out) {
  check_pairs(kernel, dilation, padding, stride);
  at::native::im2col_shape_check(given, at::Tensor(), kernel[0], kernel[1], dilation[0], dilation[1], padding[0],
                                 padding[1], stride[0], stride[1]);
  const bool batched = given.dim() == 4;
  const at::Tensor input = batched ? given : given.unsqueeze(0);
  const auto windows = [&](int64_t axis) {
    return (input.size(2 + axis) + 2 * padding[axis] - (dilation[axis] * (kernel[axis] - 1) + 1)) / stride[axis] + 1;
  };
  const int64_t batch = input.size(0), channels = input.size(1), height = windows(0), width = windows(1);
  out.resize_({batch, channels * kernel[0] * kernel[1], height * width});
  if (out.numel() > 0) {
    const c10::SmallVector<int64_t, 6> sizes{batch, channels, kernel[0], kernel[1], height, width};
    Indexed launch(kIm2col);
    launch.iterate(sizes)
        .operand(out, dense_strides(sizes))
        .operand(input, {input.stride(0), input.stride(1), 0, 0, 0, 0})
        .extra(input.size(2))
        .extra(input.size(3))
        .extra(input.stride(2))
        .extra(input.stride(3));
    for (int axis = 0; axis < 2; ++axis) launch.extra(stride[axis]).extra(padding[axis]).extra(dilation[axis]);
    launch.run();
  }
  if (!batched) out.resize_({out.size(1), out.size(2)});
  return out;
}

at::Tensor im2col(const at::Tensor& input, at::IntArrayRef kernel, at::IntArrayRef dilation, at::IntArrayRef padding,
                  at::IntArrayRef stride) {
  at::Tensor out = empty_tensor({0}, {}, input.scalar_type());
  return im2col_out(input, kernel, dilation, padding, stride, out);
}

at::Tensor& col2im_out(const at::Tensor& given, at::IntArrayRef size, at::IntArrayRef kernel, at::IntArrayRef dilation,
                       at::IntArrayRef padding, at::IntArrayRef stride, at::Tensor& out) {
  TORCH_CHECK(size.size() == 2, "It is expected output_size equals to 2, but got size ", size.size());
  check_pairs(kernel, dilation, padding, stride);
  at::native::col2im_shape_check(given, at::Tensor(), size[0], size[1], kernel[0], kernel[1], dilation[0], dilation[1],
                                 padding[0], padding[1], stride[0], stride[1]);
  const bool batched = given.dim() == 3;
  const at::Tensor columns = batched ? given : given.unsqueeze(0);
  const int64_t batch = columns.size(0), elements = kernel[0] * kernel[1], channels = columns.size(1) / elements;
  const auto windows = [&](int64_t axis) {
    return (size[axis] + 2 * padding[axis] - (dilation[axis] * (kernel[axis] - 1) + 1)) / stride[axis] + 1;
  };
  out.resize_({batch, channels, size[0], size[1]});
  if (out.numel() > 0) {
    Indexed launch(kCol2im, given.scalar_type());
    launch.iterate(out.sizes())
        .operand(out, out.strides())
        .operand(columns, {columns.stride(0), columns.stride(1) * elements, 0, 0})
        .extra(kernel[0])
        .extra(kernel[1])
        .extra(windows(0))
        .extra(windows(1))
        .extra(columns.stride(1))
        .extra(columns.stride(2));
    for (int axis = 0; axis < 2; ++axis) launch.extra(stride[axis]).extra(padding[axis]).extra(dilation[axis]);
    launch.run();
  }
  if (!batched) out.resize_({channels, size[0], size[1]});
  return out;
}

at::Tensor col2im(const at::Tensor& columns, at::IntArrayRef size, at::IntArrayRef kernel, at::IntArrayRef dilation,
                  at::IntArrayRef padding, at::IntArrayRef stride) {
  at::Tensor out = empty_tensor({0}, {}, columns.scalar_type());
  return col2im_out(columns, size, kernel, dilation, padding, stride, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&im2col, kAny>(library, "im2col");
  native<&im2col_out, kAny>(library, "im2col.out");
  native<&col2im>(library, "col2im");
  native<&col2im_out>(library, "col2im.out");
}

}  // namespace
}  // namespace torch_webgpu
