// Sums and products with sparse tensors of coordinates.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "ops/native.h"
#include "ops/sparse/coordinates.h"

namespace torch_webgpu {
namespace {

at::Tensor& add_to_dense(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  TORCH_CHECK(!out.is_sparse(), "add: expected 'out' to be dense, as 'self' is");
  TORCH_CHECK(self.sizes() == other.sizes(), "add: expected 'self' and 'other' to have same size, but self has size ",
              self.sizes(), " while other has size ", other.sizes(),
              " (FYI: dense-sparse addition does not currently support broadcasting)");
  const auto common = at::promoteTypes(self.scalar_type(), other.scalar_type());
  TORCH_CHECK(at::canCast(common, out.scalar_type()), "Can't convert result type ", common, " to output ",
              out.scalar_type(), " in add operation");
  out.resize_(self.sizes());
  const bool in_place = out.is_contiguous() && out.scalar_type() == common;
  at::Tensor sum = in_place ? out : at::empty(self.sizes(), self.options().dtype(common));
  if (!sum.is_same(self)) sum.copy_(self);
  if (other._nnz() > 0 && sum.numel() > 0) {
    rows_of(sum, other).index_add_(0, places_of(other), other._values().to(common), alpha);
  }
  if (!in_place) out.copy_(sum);
  return out;
}

at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  if (!self.is_sparse()) return add_to_dense(self, other, alpha, out);
  TORCH_CHECK(other.is_sparse(), "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  TORCH_CHECK(self.sizes() == other.sizes(), "add: expected sizes of 'self' and 'other' to match, but ", self.sizes(),
              " != ", other.sizes());
  const auto common = at::promoteTypes(self.scalar_type(), other.scalar_type());
  TORCH_CHECK(at::canCast(common, out.scalar_type()), "Can't convert result type ", common, " to output ",
              out.scalar_type(), " in add operation");
  const auto set = [&](const at::Tensor& like, const at::Tensor& indices, const at::Tensor& values, bool coalesced) {
    set_elements(out, like.sparse_dim(), like.sizes(), indices, values, coalesced);
  };
  if (other._nnz() == 0) {
    set(self, self._indices().clone(), self._values().clone(), self.is_coalesced());
    return out;
  }
  const at::Tensor added = other._values().to(common).mul(alpha);
  if (self._nnz() == 0) {
    set(other, other._indices().clone(), added, other.is_coalesced());
    return out;
  }
  TORCH_CHECK(self.sparse_dim() == other.sparse_dim(),
              "add: expected 'self' and 'other' to have same density, but 'self' has ", self.sparse_dim(),
              " sparse dimensions while 'other' has ", other.sparse_dim(), " sparse dimensions");
  set(self, at::cat({self._indices(), other._indices()}, 1), at::cat({self._values().to(common), added}, 0), false);
  return out;
}

// The dense operand is looked at where the sparse one has elements.
at::Tensor& multiply_by_dense(const at::Tensor& sparse, const at::Tensor& dense, at::Tensor& out) {
  const at::Tensor values = sparse._values();
  at::Tensor factors = dense;
  if (dense.dim() > 0) {
    TORCH_CHECK_NOT_IMPLEMENTED(at::is_expandable_to(dense.sizes(), sparse.sizes()), "webgpu: a sparse tensor of size ",
                                sparse.sizes(), " is not broadcast in a product with a dense one of size ",
                                dense.sizes());
    factors = rows_of(dense.expand(sparse.sizes()), sparse).index_select(0, places_of(sparse));
  }
  set_elements(out, sparse.sparse_dim(), sparse.sizes(), sparse._indices().clone(), values.mul(factors),
               sparse.is_coalesced());
  return out;
}

// The places that both have: each of the one is searched for among the other's. The host waits for their number.
at::Tensor& multiply_sparse(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  TORCH_CHECK(self.sizes() == other.sizes(), "mul: expected 'self' and 'other' to have same sizes, but ", self.sizes(),
              " != ", other.sizes());
  TORCH_CHECK(self.sparse_dim() == other.sparse_dim(),
              "mul: expected 'self' and 'other' to have as many sparse "
              "dimensions, but ",
              self.sparse_dim(), " != ", other.sparse_dim());
  const at::Tensor one = self.coalesce(), two = other.coalesce();
  const auto values_of = [](const at::Tensor& sparse, const at::Tensor& which) {
    return sparse._values().index_select(0, which);
  };
  if (one._nnz() == 0 || two._nnz() == 0) {
    const at::Tensor& none = one._nnz() == 0 ? one : two;
    set_elements(out, self.sparse_dim(), self.sizes(), none._indices().clone(), none._values().clone(), true);
    return out;
  }
  const at::Tensor wanted = places_of(one), there = places_of(two).contiguous();
  const at::Tensor found = at::searchsorted(there, wanted).clamp_max_(there.numel() - 1);
  const at::Tensor both = there.index_select(0, found).eq(wanted).nonzero().squeeze(1);
  set_elements(out, self.sparse_dim(), self.sizes(), one._indices().index_select(1, both),
               values_of(one, both).mul(values_of(two, found.index_select(0, both))), true);
  return out;
}

at::Tensor& mul_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const auto common = at::result_type(self, other);
  TORCH_CHECK(at::canCast(common, out.scalar_type()), "Can't convert result type ", common, " to output ",
              out.scalar_type(), " in mul operation");
  if (!other.is_sparse()) return multiply_by_dense(self, other, out);
  if (!self.is_sparse()) return multiply_by_dense(other, self, out);
  return multiply_sparse(self, other, out);
}

// beta * self + alpha * (sparse @ dense): a row of `dense` per element of `sparse`, added up by its row.
at::Tensor& addmm_out(const at::Tensor& self, const at::Tensor& sparse, const at::Tensor& dense, const at::Scalar& beta,
                      const at::Scalar& alpha, at::Tensor& out) {
  TORCH_CHECK(sparse.is_sparse() && !dense.is_sparse() && !self.is_sparse() && !out.is_sparse(),
              "addmm: expected a dense 'self', a sparse 'mat1' and a dense 'mat2'");
  TORCH_CHECK(sparse.dim() == 2, "addmm: matrices expected, got ", sparse.dim(), "D tensor");
  TORCH_CHECK(sparse.dense_dim() == 0, "addmm: scalar values expected, got ", sparse.dense_dim(), "D values");
  TORCH_CHECK(dense.dim() == 2, "addmm: matrices expected, got ", dense.dim(), "D tensor");
  TORCH_CHECK(dense.size(0) == sparse.size(1), "addmm: Argument #3 (dense): Expected dim 0 size ", sparse.size(1),
              ", got ", dense.size(0));
  const at::DimVector sizes{sparse.size(0), dense.size(1)};
  const at::Tensor added = self.expand(sizes);
  const bool kept = beta.toComplexDouble() != 0.0;
  at::Tensor sum = kept ? added.mul(beta) : at::zeros(sizes, added.options());
  if (sparse._nnz() > 0 && sum.numel() > 0) {
    const at::Tensor indices = sparse._indices();
    const at::Tensor rows = dense.index_select(0, indices[1]).mul_(sparse._values().unsqueeze(1));
    sum.index_add_(0, indices[0], rows, alpha);
  }
  out.resize_(sizes);
  out.copy_(sum);
  return out;
}

at::Tensor addmm(const at::Tensor& self, const at::Tensor& sparse, const at::Tensor& dense, const at::Scalar& beta,
                 const at::Scalar& alpha) {
  at::Tensor out = at::empty({0}, self.options());
  return addmm_out(self, sparse, dense, beta, alpha, out);
}

at::Tensor& addmm_(at::Tensor& self, const at::Tensor& sparse, const at::Tensor& dense, const at::Scalar& beta,
                   const at::Scalar& alpha) {
  return addmm_out(self, sparse, dense, beta, alpha, self);
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
  library.impl("add.out", &add_out);
  library.impl("mul.out", &mul_out);
  library.impl("addmm", &addmm);
  library.impl("addmm_", &addmm_);
  library.impl("addmm.out", &addmm_out);
}

}  // namespace
}  // namespace torch_webgpu
