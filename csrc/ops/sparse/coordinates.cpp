#include "ops/sparse/coordinates.h"

#include <ATen/native/SparseTensorUtils.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "ops/native.h"

namespace torch_webgpu {

int64_t place_count(const at::Tensor& sparse) {
  return c10::multiply_integers(sparse.sizes().slice(0, sparse.sparse_dim()));
}

at::Tensor places_of(const at::Tensor& sparse) {
  const at::Tensor indices = sparse._indices();
  if (sparse.sparse_dim() == 0) return at::zeros({sparse._nnz()}, indices.options());
  at::Tensor places = indices[0];
  for (int64_t dim = 1; dim < sparse.sparse_dim(); ++dim) places = places.mul(sparse.size(dim)).add_(indices[dim]);
  return places;
}

at::Tensor rows_of(const at::Tensor& dense, const at::Tensor& sparse) {
  at::DimVector sizes{place_count(sparse)};
  const auto rest = sparse.sizes().slice(sparse.sparse_dim());
  sizes.append(rest.begin(), rest.end());
  return dense.reshape(sizes);
}

void set_elements(const at::Tensor& out, int64_t sparse_dim, at::IntArrayRef sizes, const at::Tensor& indices,
                  const at::Tensor& values, bool coalesced) {
  auto* made = at::sparse::get_sparse_impl(out);
  if (out.sizes() != sizes || out.sparse_dim() != sparse_dim) {
    made->resize_and_clear_(sparse_dim, static_cast<int64_t>(sizes.size()) - sparse_dim, sizes);
  }
  at::sparse::alias_into_sparse(out, indices, values.to(out.scalar_type()));
  made->set_coalesced(coalesced);
}

namespace {

// Elements of one place become their sum, in the order of places. The host waits for how many are left.
at::Tensor coalesce(const at::Tensor& self) {
  TORCH_INTERNAL_ASSERT(!self.is_coalesced());
  if (self._nnz() < 2) {
    at::Tensor same = self.clone();
    return same._coalesced_(true);
  }
  const auto [places, group, counts] = at::_unique2(places_of(self), /*sorted=*/true, /*return_inverse=*/true);
  const at::Tensor values = self._values();
  const bool is_bool = values.scalar_type() == at::kBool;
  auto sizes = values.sizes().vec();
  sizes[0] = places.numel();
  at::Tensor sums = at::zeros(sizes, values.options().dtype(is_bool ? at::kInt : values.scalar_type()));
  sums.index_add_(0, group, values.to(sums.scalar_type()));
  // All elements of a group have the same indices, so it does not matter which of them is written last.
  at::Tensor indices = at::zeros({self.sparse_dim(), places.numel()}, places.options());
  if (self.sparse_dim() == 1) {
    indices = places.unsqueeze(0);
  } else if (self.sparse_dim() > 1) {
    indices.index_copy_(1, group, self._indices());
  }
  at::Tensor result = at::empty({0}, self.options());
  set_elements(result, self.sparse_dim(), self.sizes(), indices, sums, /*coalesced=*/true);
  return result;
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) { library.impl("_coalesce", &coalesce); }

}  // namespace
}  // namespace torch_webgpu
