// Matrix products through strides: mm, addmm, bmm, baddbmm.
#include "ops/matmul.h"

#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/baddbmm_meta.h>
#include <ATen/ops/bmm_meta.h>
#include <ATen/ops/mm_meta.h>
#include <torch/library.h>

#include "ops/launch.h"
#include "ops/native.h"
#include "ops/structured.h"
#include "shader/matmul.h"

namespace torch_webgpu {
namespace {

KernelSource print(const Launch& launch) {
  const auto spec = spec_of<MatmulSpec>(launch);
  return {label_matmul(spec), print_matmul(spec, target())};
}

// The last two dimensions, and a batch before them where there is one.
struct Matrix {
  explicit Matrix(const at::Tensor& tensor) : tensor(tensor) {
    const int64_t dims = tensor.dim();
    strides[0] = dims > 2 ? tensor.stride(0) : 0;
    strides[1] = tensor.stride(dims - 2);
    strides[2] = tensor.stride(dims - 1);
  }
  const at::Tensor& tensor;
  int64_t strides[3];
};

}  // namespace

void matmul(const char* name, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c,
            const at::Scalar& alpha, const at::Scalar& beta) {
  if (out.numel() == 0) return;
  TORCH_CHECK_NOT_IMPLEMENTED(out.scalar_type() != at::kBool, "\"", name, "\" not implemented for 'Bool'");
  const bool in_place = c.defined() && c.is_same(out) && out.element_size() >= 4;
  const auto shares = [&](const at::Tensor& input) { return input.defined() && buffer_of(input) == buffer_of(out); };
  if (shares(a) || shares(b) || (shares(c) && !in_place)) {
    // A buffer that is written is not read: out= may name a part of an operand's.
    const at::Tensor result = empty_tensor(out.sizes(), {}, out.scalar_type());
    matmul(name, result, a, b, c, alpha, beta);
    out.copy_(result);
    return;
  }
  MatmulSpec spec{};
  Launch launch;
  const int64_t rows = out.size(-2), columns = out.size(-1), depth = a.size(-1),
                batches = out.dim() > 2 ? out.size(0) : 1;
  const at::Tensor* operands[] = {&out, &a, &b, &c};
  spec.has_c = c.defined();
  const at::Tensor nothing = depth == 0 ? empty_tensor({1}, {}, at::kFloat) : at::Tensor();
  for (uint32_t i = 0; i < (spec.has_c ? 4u : 3u); ++i) {
    const Buffer* buffer = buffer_of(*operands[i]);
    if (!buffer) buffer = buffer_of(nothing);  // of a side without elements nothing is read
    TORCH_CHECK(buffer->size_bytes <= max_binding_bytes(), "webgpu: ", name, ": a tensor of ",
                operands[i]->storage().nbytes(), " bytes is larger than the adapter's maxStorageBufferBindingSize, ",
                max_binding_bytes(), " bytes");
    spec.dtype[i] = static_cast<uint8_t>(kernel_dtype(operands[i]->scalar_type(), name));
    spec.binding[i] = static_cast<uint8_t>(bind(launch, buffer));
    const Matrix matrix(*operands[i]);
    uint32_t* place = &launch.params[MatmulParams::offset(i)];
    place[0] = static_cast<uint32_t>(operands[i]->storage_offset());
    for (int stride = 0; stride < 3; ++stride) place[1 + stride] = static_cast<uint32_t>(matrix.strides[stride]);
  }
  const Compute compute = compute_type(kernel_dtype(out.scalar_type(), name));
  spec.compute = static_cast<uint8_t>(compute);
  write_scalar(&launch.params[MatmulParams::kScalars], compute, alpha);
  write_scalar(&launch.params[MatmulParams::kScalars + 2], compute, beta);
  const auto tiles = [](int64_t size) { return (size + 3) / 4; };
  const auto [groups, chunk] = chunks_of(tiles(rows) * tiles(columns) * batches, target().workgroup);
  launch.params[MatmulParams::kRows] = static_cast<uint32_t>(rows);
  launch.params[MatmulParams::kColumns] = static_cast<uint32_t>(columns);
  launch.params[MatmulParams::kDepth] = static_cast<uint32_t>(depth);
  launch.params[MatmulParams::kBatches] = static_cast<uint32_t>(batches);
  launch.params[MatmulParams::kChunk] = chunk;
  launch.param_words = MatmulParams::kWords;
  launch.grid[0] = groups;
  set_key(launch, Family::matmul, spec);
  launch.print = &print;
  runtime().stream.dispatch(launch);
}

namespace {

template <class Meta>
struct Product {
  static void run(Structured<Meta>& op, const at::Tensor& a, const at::Tensor& b) {
    op.meta(a, b);
    matmul("addmm_impl_webgpu", op.outputs[0], a, b, {}, 1, 0);
  }
  static at::Tensor functional(const at::Tensor& a, const at::Tensor& b) {
    Structured<Meta> op(Form::functional);
    run(op, a, b);
    return op.outputs[0];
  }
  static at::Tensor& out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
    Structured<Meta> op(Form::out);
    op.outputs[0] = out;
    run(op, a, b);
    return out;
  }
};

template <class Meta>
struct AddedProduct {
  static void run(Structured<Meta>& op, const at::Tensor& c, const at::Tensor& a, const at::Tensor& b,
                  const at::Scalar& beta, const at::Scalar& alpha) {
    op.meta(c, a, b, beta, alpha);
    const at::Tensor& out = op.outputs[0];
    // With beta 0 even a NaN in c does not count.
    const bool ignored = beta.isFloatingPoint() ? beta.toDouble() == 0 : beta.toLong() == 0;
    matmul("addmm_impl_webgpu", out, a, b,
           ignored          ? at::Tensor()
           : c.is_same(out) ? out
                            : c.expand(out.sizes()),
           alpha, beta);
  }
  static at::Tensor functional(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                               const at::Scalar& alpha) {
    Structured<Meta> op(Form::functional);
    run(op, c, a, b, beta, alpha);
    return op.outputs[0];
  }
  static at::Tensor& inplace(at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                             const at::Scalar& alpha) {
    Structured<Meta> op(Form::inplace);
    op.outputs[0] = c;
    run(op, c, a, b, beta, alpha);
    return c;
  }
  static at::Tensor& out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                         const at::Scalar& alpha, at::Tensor& out) {
    Structured<Meta> op(Form::out);
    op.outputs[0] = out;
    run(op, c, a, b, beta, alpha);
    return out;
  }
};

using MM = Product<at::meta::structured_mm>;
using BMM = Product<at::meta::structured_bmm>;
using AddMM = AddedProduct<at::meta::structured_addmm>;
using BAddBMM = AddedProduct<at::meta::structured_baddbmm>;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&MM::functional>(library, "mm");
  native<&MM::out>(library, "mm.out");
  native<&BMM::functional>(library, "bmm");
  native<&BMM::out>(library, "bmm.out");
  native<&AddMM::functional>(library, "addmm");
  native<&AddMM::inplace>(library, "addmm_");
  native<&AddMM::out>(library, "addmm.out");
  native<&BAddBMM::functional>(library, "baddbmm");
  native<&BAddBMM::inplace>(library, "baddbmm_");
  native<&BAddBMM::out>(library, "baddbmm.out");
}

}  // namespace
}  // namespace torch_webgpu
