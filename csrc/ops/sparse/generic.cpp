// Sparse tensors by what PyTorch has for those of any device: kernels of its own that work on indices and values. The
// counted fallback takes the rest, and what is computed with compressed layouts (CSR and its kin).
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_dimI_native.h>
#include <ATen/ops/_dimV_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_broadcast_to_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_to_dense_native.h>
#include <ATen/ops/_to_sparse_bsc_native.h>
#include <ATen/ops/_to_sparse_bsr_native.h>
#include <ATen/ops/_to_sparse_csc_native.h>
#include <ATen/ops/_to_sparse_csr_native.h>
#include <ATen/ops/_to_sparse_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/abs_native.h>
#include <ATen/ops/add_native.h>
#include <ATen/ops/any_native.h>
#include <ATen/ops/asin_native.h>
#include <ATen/ops/asinh_native.h>
#include <ATen/ops/atan_native.h>
#include <ATen/ops/atanh_native.h>
#include <ATen/ops/cat_native.h>
#include <ATen/ops/ccol_indices_native.h>
#include <ATen/ops/ceil_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/col_indices_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/crow_indices_native.h>
#include <ATen/ops/deg2rad_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/div_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/erf_native.h>
#include <ATen/ops/erfinv_native.h>
#include <ATen/ops/expm1_native.h>
#include <ATen/ops/floor_divide_native.h>
#include <ATen/ops/floor_native.h>
#include <ATen/ops/frac_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/isinf_native.h>
#include <ATen/ops/isnan_native.h>
#include <ATen/ops/isneginf_native.h>
#include <ATen/ops/isposinf_native.h>
#include <ATen/ops/log1p_native.h>
#include <ATen/ops/mm_native.h>
#include <ATen/ops/mul_native.h>
#include <ATen/ops/mv_native.h>
#include <ATen/ops/nan_to_num_native.h>
#include <ATen/ops/narrow_copy_native.h>
#include <ATen/ops/native_norm_native.h>
#include <ATen/ops/neg_native.h>
#include <ATen/ops/norm_native.h>
#include <ATen/ops/permute_native.h>
#include <ATen/ops/pow_native.h>
#include <ATen/ops/rad2deg_native.h>
#include <ATen/ops/relu_native.h>
#include <ATen/ops/resize_as_sparse_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/round_native.h>
#include <ATen/ops/row_indices_native.h>
#include <ATen/ops/select_native.h>
#include <ATen/ops/sgn_native.h>
#include <ATen/ops/sign_native.h>
#include <ATen/ops/signbit_native.h>
#include <ATen/ops/sin_native.h>
#include <ATen/ops/sinh_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/sparse_mask_native.h>
#include <ATen/ops/sparse_resize_and_clear_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/ops/sqrt_native.h>
#include <ATen/ops/sub_native.h>
#include <ATen/ops/sum_native.h>
#include <ATen/ops/tan_native.h>
#include <ATen/ops/tanh_native.h>
#include <ATen/ops/threshold_backward_native.h>
#include <ATen/ops/trunc_native.h>
#include <ATen/ops/unsqueeze_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/zero_native.h>
#include <ATen/ops/zeros_native.h>
#include <torch/library.h>

#include "device/sparse_fallback.h"

namespace torch_webgpu {
namespace {

using Unary = at::Tensor(const at::Tensor&);
using Binary = at::Tensor(const at::Tensor&, const at::Tensor&);
using InPlace = at::Tensor&(at::Tensor&, const at::Tensor&);
using Rounding = std::optional<std::string_view>;

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& target) {
  at::Tensor result = target;
  return result.copy_(self);
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_sparse_on_cpu>());
}
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_sparse_on_cpu>());
}

// A function of numbers that keeps zero: of the values.
#define OF_VALUES(name)                                 \
  library.impl(#name, &at::native::name##_sparse);      \
  library.impl(#name "_", &at::native::name##_sparse_); \
  library.impl(#name ".out", &at::native::name##_sparse_out)

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_sparse_coo_tensor_with_dims", &at::native::new_with_dims_sparse);
  library.impl("_sparse_coo_tensor_with_dims_and_tensors", &at::native::new_with_dims_and_tensor_sparse_symint);
  library.impl("empty.memory_format", &at::native::empty_sparse);
  library.impl("empty_like", &at::native::empty_like_sparse_coo);
  library.impl("zeros.out", &at::native::zeros_sparse_out);
  library.impl("sparse_dim", &at::native::sparse_dim_sparse);
  library.impl("_dimI", &at::native::sparse_dim_sparse);
  library.impl("dense_dim", &at::native::dense_dim_sparse);
  library.impl("_dimV", &at::native::dense_dim_sparse);
  library.impl("_nnz", &at::native::_nnz_sparse);
  library.impl("is_coalesced", &at::native::is_coalesced_sparse);
  library.impl("_coalesced_", &at::native::_coalesced_sparse_);
  library.impl("_indices", &at::native::_indices_sparse);
  library.impl("_values", &at::native::_values_sparse);
  library.impl("indices", &at::native::indices_sparse);
  library.impl("values", &at::native::values_sparse);
  library.impl("copy_", &at::native::copy_sparse_wrapper_);
  library.impl("copy_sparse_to_sparse_", &at::native::copy_sparse_);
  library.impl("clone", &at::native::clone_sparse);
  library.impl("zero_", &at::native::zero_sparse_);
  library.impl("sparse_resize_", &at::native::sparse_resize_);
  library.impl("sparse_resize_and_clear_", &at::native::sparse_resize_and_clear_);
  library.impl("resize_as_sparse_", &at::native::resize_as_sparse_);
  library.impl("_to_dense", &at::native::sparse_to_dense);
  library.impl("sparse_mask", &at::native::sparse_mask);
  library.impl("_to_sparse_csr", &at::native::coo_to_sparse_csr);
  library.impl("_to_sparse_csc", &at::native::coo_to_sparse_csc);
  library.impl("_to_sparse_bsr", &at::native::coo_to_sparse_bsr);
  library.impl("_to_sparse_bsc", &at::native::coo_to_sparse_bsc);
  library.impl("permute", &at::native::permute_sparse_coo);
  library.impl("unsqueeze", &at::native::unsqueeze_sparse);
  library.impl("narrow_copy", &at::native::narrow_copy_sparse);
  library.impl("cat", &at::native::cat_sparse);
  library.impl("_sparse_broadcast_to", &at::native::sparse_broadcast_to);
  library.impl("add.Tensor", &at::native::add_sparse);
  library.impl("add_.Tensor", &at::native::add_sparse_);
  library.impl("sub.Tensor", &at::native::sub_sparse);
  library.impl("sub_.Tensor", &at::native::sub_sparse_);
  library.impl("sub.out", &at::native::sub_out_sparse);
  library.impl("mul.Tensor", &at::native::mul_sparse);
  library.impl("mul_.Tensor", &at::native::mul_sparse_);
  library.impl("neg.out", &at::native::neg_out_sparse);
  library.impl("mm.out", &at::native::_sparse_mm_out);
  library.impl("mv", &at::native::mv_sparse);
  library.impl("sum", &at::native::sum_coo);
  library.impl("sum.dim_IntList", &at::native::sum_sparse_coo);
  library.impl("norm.ScalarOpt_dim_dtype", &at::native::sparse_dtype_norm);
  library.impl("norm.ScalarOpt_dim", &at::native::sparse_norm);
  library.impl("pow.Tensor_Scalar", &at::native::pow_sparse_scalar);
  library.impl("pow.Tensor_Scalar_out", &at::native::pow_out_sparse_scalar);
  library.impl("any", &at::native::any_sparse);
  library.impl("isnan", &at::native::isnan_sparse);
  library.impl("isinf", &at::native::isinf_sparse);
  library.impl("isposinf", &at::native::isposinf_sparse);
  library.impl("isposinf.out", &at::native::isposinf_sparse_out);
  library.impl("isneginf", &at::native::isneginf_sparse);
  library.impl("isneginf.out", &at::native::isneginf_sparse_out);
  library.impl("signbit", &at::native::signbit_sparse);
  library.impl("signbit.out", &at::native::signbit_sparse_out);
  library.impl("nan_to_num", &at::native::nan_to_num_sparse);
  library.impl("nan_to_num_", &at::native::nan_to_num_sparse_);
  library.impl("nan_to_num.out", &at::native::nan_to_num_sparse_out);
  library.impl("threshold_backward", &at::native::threshold_backward_sparse);
  library.impl("floor_divide", &at::native::floor_divide_sparse);
  library.impl("floor_divide_.Tensor", &at::native::floor_divide_sparse_);
  library.impl("floor_divide.out", &at::native::floor_divide_out_sparse_zerodim);
  library.impl("neg", &at::native::neg_sparse);
  library.impl("neg_", &at::native::neg_sparse_);
  library.impl("relu", &at::native::relu_sparse);
  library.impl("relu_", &at::native::relu_sparse_);
  library.impl("mm", static_cast<Binary*>(&at::native::_sparse_mm));
  library.impl("div.Tensor", static_cast<Binary*>(&at::native::div_sparse));
  library.impl("div_.Tensor", static_cast<InPlace*>(&at::native::div_sparse_));
  library.impl("div.out", static_cast<at::Tensor& (*)(const at::Tensor&, const at::Tensor&, at::Tensor&)>(
                              &at::native::div_out_sparse_zerodim));
  library.impl("div.Tensor_mode",
               static_cast<at::Tensor (*)(const at::Tensor&, const at::Tensor&, Rounding)>(&at::native::div_sparse));
  library.impl("native_norm.ScalarOpt_dim_dtype",
               static_cast<at::Tensor (*)(const at::Tensor&, const std::optional<at::Scalar>&, at::IntArrayRef, bool,
                                          std::optional<at::ScalarType>)>(&at::native::norm_sparse));
  library.impl("native_norm",
               static_cast<at::Tensor (*)(const at::Tensor&, const at::Scalar&)>(&at::native::norm_sparse));
  library.impl("_to_sparse",
               static_cast<at::Tensor (*)(const at::Tensor&, std::optional<at::Layout>, at::OptionalIntArrayRef,
                                          std::optional<int64_t>)>(&at::native::sparse_coo_to_sparse));
  library.impl("_to_sparse.sparse_dim",
               static_cast<at::Tensor (*)(const at::Tensor&, int64_t)>(&at::native::sparse_coo_to_sparse));
  OF_VALUES(abs);
  OF_VALUES(asin);
  OF_VALUES(asinh);
  OF_VALUES(atan);
  OF_VALUES(atanh);
  OF_VALUES(ceil);
  OF_VALUES(deg2rad);
  OF_VALUES(erf);
  OF_VALUES(erfinv);
  OF_VALUES(expm1);
  OF_VALUES(floor);
  OF_VALUES(frac);
  OF_VALUES(log1p);
  OF_VALUES(rad2deg);
  OF_VALUES(round);
  OF_VALUES(sgn);
  OF_VALUES(sign);
  OF_VALUES(sin);
  OF_VALUES(sinh);
  OF_VALUES(sqrt);
  OF_VALUES(tan);
  OF_VALUES(tanh);
  OF_VALUES(trunc);
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, library) {
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("empty.memory_format", &at::native::empty_sparse_compressed);
  library.impl("empty_like", &at::native::empty_like_sparse_csr);
  library.impl("copy_", &at::native::copy_sparse_compressed_);
  library.impl("clone", &at::native::clone_sparse_compressed);
  library.impl("zero_", &at::native::zero_sparse_csr_);
  library.impl("resize_", &at::native::resize_sparse_csr_);
  library.impl("resize_as_sparse_", &at::native::resize_as_sparse_compressed_);
  library.impl("select.int", &at::native::select_sparse_csr);
  library.impl("sparse_dim", &at::native::sparse_dim_sparse_csr);
  library.impl("dense_dim", &at::native::dense_dim_sparse_csr);
  library.impl("_nnz", &at::native::_nnz_sparse_csr);
  library.impl("values", &at::native::values_sparse_csr);
  library.impl("crow_indices", &at::native::crow_indices_sparse_csr);
  library.impl("col_indices", &at::native::col_indices_sparse_csr);
  library.impl("ccol_indices", &at::native::ccol_indices_sparse_csr);
  library.impl("row_indices", &at::native::row_indices_sparse_csr);
  // These have kernels of PyTorch's for dense tensors of every device, which would be taken before a fallback.
  for (const char* name :
       {"abs",        "add.Tensor",  "add_.Tensor", "add.out",     "addmm", "addmm.out", "asin",
        "asinh",      "atan",        "atanh",       "bmm",         "ceil",  "deg2rad",   "div.Tensor",
        "erf",        "erfinv",      "expm1",       "floor",       "log1p", "mm",        "mm.out",
        "mul.Scalar", "mul.Tensor",  "mul_.Scalar", "mul_.Tensor", "neg",   "rad2deg",   "relu",
        "round",      "sgn",         "sign",        "signbit",     "sin",   "sinh",      "sqrt",
        "sub.Tensor", "sub_.Tensor", "sum",         "tan",         "tanh",  "trunc"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_sparse_on_cpu>());
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_to_sparse",
               static_cast<at::Tensor (*)(const at::Tensor&, std::optional<at::Layout>, at::OptionalIntArrayRef,
                                          std::optional<int64_t>)>(&at::native::dense_to_sparse));
  library.impl("_to_sparse.sparse_dim",
               static_cast<at::Tensor (*)(const at::Tensor&, int64_t)>(&at::native::dense_to_sparse));
}

}  // namespace
}  // namespace torch_webgpu
