// Products of matrices and vectors as PyTorch names them: mm, addmm, bmm, baddbmm, addbmm, addmv, dot, addr and kin.
#include <ATen/ExpandUtils.h>
#include <ATen/native/LinearAlgebra.h>
#include <ATen/ops/_addmm_activation_meta.h>
#include <ATen/ops/_efficientzerotensor.h>
#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/addmv_meta.h>
#include <ATen/ops/addr_native.h>
#include <ATen/ops/baddbmm_meta.h>
#include <ATen/ops/bmm_meta.h>
#include <ATen/ops/mm_meta.h>
#include <torch/library.h>

#include "families/matmul.h"
#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

// What errors call a product; small batches have names of their own, as on the CPU.
constexpr const char* kMatrix = "addmm";

bool is_small(const at::Tensor& out, const at::Tensor& a) { return out.size(1) * out.size(2) * a.size(2) < 400; }

void check_same_dtype(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.dtype() == b.dtype(), "expected m1 and m2 to have the same dtype, but got: ", a.dtype(),
              " != ", b.dtype());
}
void check_batches(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (out.numel() == 0 || a.size(2) == 0) return;
  if (!is_small(out, a)) check_same_dtype(a, b);
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "expected scalar type ", a.scalar_type(), " but found ",
              b.scalar_type());
}

// The summand, expanded to the shape of the result. With beta 0 it is ignored, even its NaNs.
at::Tensor addend(const at::Tensor& c, const at::Tensor& out, const at::Scalar& beta) {
  if (beta.toComplexDouble() == 0.0) return {};
  return c.is_same(out) ? c : c.expand(out.sizes());
}

struct Matrices {
  template <class Op>
  static void run(Op& op, const at::Tensor& a, const at::Tensor& b) {
    check_same_dtype(a, b);
    matmul(kMatrix, op.outputs[0], a, b);
  }
  template <class Op>
  static void run(Op& op, const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                  const at::Scalar& alpha) {
    matmul(kMatrix, op.outputs[0], a, b, addend(c, op.outputs[0], beta), alpha, beta);
  }
};

struct Batches {
  template <class Op>
  static void run(Op& op, const at::Tensor& a, const at::Tensor& b) {
    check_batches(op.outputs[0], a, b);
    matmul(is_small(op.outputs[0], a) ? "bmm" : kMatrix, op.outputs[0], a, b);
  }
};

using MM = FormsOf<at::meta::structured_mm, Matrices>;
using AddMM = FormsOf<at::meta::structured_addmm, Matrices>;
using BMM = FormsOf<at::meta::structured_bmm, Batches>;

// PyTorch's meta function copies the summand into the result unless beta is 0, which this op does not need.
struct BAddBMM {
  static void run(Structured<at::meta::structured_baddbmm>& op, const at::Tensor& c, const at::Tensor& a,
                  const at::Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
    op.meta(c, a, b, 0, alpha);
    const at::Tensor& out = op.outputs[0];
    check_batches(out, a, b);
    matmul(is_small(out, a) ? "baddbmm" : kMatrix, out, a, b, addend(c, out, beta), alpha, beta);
  }
};

constexpr Epilogue kRelu{", relu", "max(add(mul(s0, product), mul(s1, c)), zero)", true};
constexpr Epilogue kGelu{", gelu", "gelu(add(mul(s0, product), mul(s1, c)))", true, "activation"};

struct Activated {
  template <class Op>
  static void run(Op& op, const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                  const at::Scalar& alpha, bool use_gelu) {
    const at::Tensor& out = op.outputs[0];
    const at::Tensor added = addend(c, out, beta);
    const bool fused = added.defined() && out.is_floating_point();
    matmul(kMatrix, out, a, b, added, alpha, beta, !fused ? nullptr : use_gelu ? &kGelu : &kRelu);
    if (!fused) use_gelu ? at::gelu_(const_cast<at::Tensor&>(out)) : at::relu_(const_cast<at::Tensor&>(out));
  }
};
using AddMMActivation = FormsOf<at::meta::structured__addmm_activation, Activated>;

// A vector is a matrix of one column.
struct Vector {
  template <class Op>
  static void run(Op& op, const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                  const at::Scalar& alpha) {
    const at::Tensor& out = op.outputs[0];
    const at::Tensor column = out.unsqueeze(1), added = addend(c, out, beta);
    matmul("addmv_impl_cpu", column, a, b.unsqueeze(1),
           !added.defined()     ? added
           : added.is_same(out) ? column
                                : added.unsqueeze(1),
           alpha, beta);
  }
};
using AddMV = FormsOf<at::meta::structured_addmv, Vector>;

bool is_half(const at::Tensor& x) { return at::isReducedFloatingType(x.scalar_type()); }

// The sum over batches is a sum over one long inner side; halves are rounded after each batch, as on the CPU.
at::Tensor& addbmm_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                       const at::Scalar& alpha, at::Tensor& out) {
  const auto c = at::expand_size(self, {a.size(1), b.size(2)}, "addbmm_out");
  TORCH_CHECK(a.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(b.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(a.size(0) == b.size(0), "batch1 and batch2 must have same number of batches, got ", a.size(0), " and ",
              b.size(0));
  TORCH_CHECK(a.size(2) == b.size(1), "Incompatible matrix sizes for bmm (", a.size(1), "x", a.size(2), " and ",
              b.size(1), "x", b.size(2), ")");
  out.resize_as_(*c);
  if (beta.toComplexDouble() != 0.0 && !c->is_same(out)) out.copy_(*c);
  if (is_half(a)) {
    for (int64_t i = 0; i < a.size(0); ++i) out.addmm_(a[i], b[i], i == 0 ? beta : at::Scalar(1), alpha);
    if (a.size(0) > 0) return out;
  }
  return out.addmm_(a.permute({1, 0, 2}).reshape({a.size(1), a.size(0) * a.size(2)}),
                    b.reshape({b.size(0) * b.size(1), b.size(2)}), beta, alpha);
}
at::Tensor& addbmm_(at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                    const at::Scalar& alpha) {
  return addbmm_out(self, a, b, beta, alpha, self);
}
at::Tensor addbmm(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                  const at::Scalar& alpha) {
  at::Tensor result = empty_tensor({0}, {}, self.scalar_type());
  return addbmm_out(self, a, b, beta, alpha, result);
}

at::Tensor dot(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(),
              "D tensors");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
              self.scalar_type(), " and ", other.scalar_type());
  const int64_t length = self.numel();
  TORCH_CHECK(length == other.numel(), "inconsistent tensor size, expected tensor [", length, "] and src [",
              other.numel(), "] to have the same number of elements, but got ", length, " and ", other.numel(),
              " elements respectively");
  if (self._is_zerotensor() || other._is_zerotensor()) return at::_efficientzerotensor({}, self.options());
  TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() != at::kBool, "\"dot\" not implemented for 'Bool'");
  const at::Tensor result = empty_tensor({}, {}, self.scalar_type());
  matmul("dot", result.view({1, 1}), self.unsqueeze(0), other.unsqueeze(1));
  return result;
}
at::Tensor vdot(const at::Tensor& self, const at::Tensor& other) { return self.dot(other); }

// The CPU rounds each step to the dtype of halves.
#define ROUNDED(dtype, x) "load_" dtype "(store_" dtype "(" x "))"
#define ROUNDED_PRODUCT(dtype) ROUNDED(dtype, ROUNDED(dtype, "s1 * b") " * c")
#define ROUNDED_SUM(dtype) ROUNDED(dtype, "s0 * a") " + " ROUNDED_PRODUCT(dtype)

void addr(at::TensorIterator& iterator, const at::Scalar& beta, const at::Scalar& alpha) {
  static constexpr PointwiseRow kSums[] = {make_row("addr", "add(mul(s0, a), mul(mul(s1, b), c))"),
                                           make_row("addr", ROUNDED_SUM("f16")), make_row("addr", ROUNDED_SUM("bf16"))};
  static constexpr PointwiseRow kProducts[] = {make_row("addr", "mul(mul(s1, b), c)"),
                                               make_row("addr", ROUNDED_PRODUCT("f16")),
                                               make_row("addr", ROUNDED_PRODUCT("bf16"))};
  const at::ScalarType dtype = iterator.common_dtype();
  const at::Scalar s0 = fitted(dtype, beta), s1 = fitted(dtype, alpha);
  const size_t row = dtype == at::kHalf ? 1 : dtype == at::kBFloat16 ? 2 : 0;
  elementwise(iterator, beta.toComplexDouble() == 0.0 ? kProducts[row] : kSums[row], dtype, {&s0, &s1});
}

at::Tensor& int_mm_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  TORCH_CHECK(self.dim() == 2, "int_mm_out_cpu: Expected self to be of dimension 2 but got ", self.dim());
  TORCH_CHECK(other.dim() == 2, "int_mm_out_cpu: Expected mat2 to be of dimension 2 but got ", other.dim());
  TORCH_CHECK(self.size(1) == other.size(0), "int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got ",
              self.size(1), " and ", other.size(0));
  TORCH_CHECK(self.dtype() == at::kChar, "int_mm_out_cpu: Expected self dtype to be of type int8 but got ",
              self.dtype());
  TORCH_CHECK(other.dtype() == at::kChar, "int_mm_out_cpu: Expected mat2 dtype to be of type int8 but got ",
              other.dtype());
  TORCH_CHECK(out.dtype() == at::kInt, "int_mm_out_cpu: Expected result dtype to be of type kInt but got ",
              out.dtype());
  TORCH_CHECK(out.size(0) == self.size(0), "int_mm_out_cpu: Expected result.size(0) to be ", self.size(0), " but got ",
              out.size(0));
  TORCH_CHECK(out.size(1) == other.size(1), "int_mm_out_cpu: Expected result.size(1) to be ", other.size(1),
              " but got ", out.size(1));
  TORCH_CHECK(out.is_contiguous(), "int_mm_out_cpu: Expected result to be contiguous.");
  matmul("int_mm_out_cpu", out, self, other);
  return out;
}
at::Tensor int_mm(const at::Tensor& self, const at::Tensor& other) {
  at::Tensor result = empty_tensor({self.size(0), other.size(1)}, {}, at::kInt);
  return int_mm_out(self, other, result);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  register_forms<MM>(library, "mm", "", "out");
  register_forms<AddMM>(library, "addmm", "", "out");
  register_forms<BMM>(library, "bmm", "", "out");
  register_forms<Forms<BAddBMM>>(library, "baddbmm", "", "out");
  register_forms<AddMV>(library, "addmv", "", "out");
  native<&AddMMActivation::functional>(library, "_addmm_activation");
  native<&AddMMActivation::out>(library, "_addmm_activation.out");
  native<&addbmm>(library, "addbmm");
  native<&addbmm_>(library, "addbmm_");
  native<&addbmm_out>(library, "addbmm.out");
  native<&dot>(library, "dot");
  native<&vdot>(library, "vdot");
  native<&int_mm>(library, "_int_mm");
  native<&int_mm_out>(library, "_int_mm.out");
  at::native::addr_stub.set_privateuse1_dispatch_ptr(&addr);
  native<&at::native::addr>(library, "addr");
  native<&at::native::addr_>(library, "addr_");
  native<&at::native::addr_out>(library, "addr.out");
}

}  // namespace
}  // namespace torch_webgpu
