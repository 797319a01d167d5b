// Distances between rows: cdist, pdist, and the cross product of vectors.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/linalg_cross_meta.h>
#include <torch/library.h>

#include <cmath>
#include <cstring>

#include "families/launch.h"
#include "families/lines.h"
#include "families/program.h"
#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

constexpr Program kDistance = make_program("cdist", "distance", "T:left T:right T:result! T:gradient T:distance",
                                           "left_rows right_rows width exponent_bits");
constexpr uint32_t kBackward = 8, kPairs = 16;

uint32_t metric(double p) {
  if (p == 0) return 0;
  if (p == 1) return 1;
  if (p == 2) return 2;
  return std::isinf(p) ? 3 : 4;
}

int64_t bits_of(double value) {
  const auto number = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

void check_floating(const at::Tensor& x1, const at::Tensor& x2) {
  TORCH_CHECK(at::isFloatingType(x1.scalar_type()),
              "cdist only supports floating-point dtypes, X1 got: ", x1.scalar_type());
  TORCH_CHECK(at::isFloatingType(x2.scalar_type()),
              "cdist only supports floating-point dtypes, X2 got: ", x2.scalar_type());
}

// Both operands with their batches expanded to the common one.
struct Sets {
  Sets(const at::Tensor& x1, const at::Tensor& x2)
      : batch(at::infer_size(x1.sizes().slice(0, x1.dim() - 2), x2.sizes().slice(0, x2.dim() - 2))),
        rows1(x1.size(-2)),
        rows2(x2.size(-2)),
        width(x1.size(-1)),
        x1(expanded(x1)),
        x2(expanded(x2)) {}

  std::vector<int64_t> shape(int64_t rows, int64_t columns) const {
    auto sizes = batch;
    sizes.insert(sizes.end(), {rows, columns});
    return sizes;
  }
  at::Tensor expanded(const at::Tensor& x) const { return x.expand(shape(x.size(-2), x.size(-1))).contiguous(); }

  const std::vector<int64_t> batch;
  const int64_t rows1, rows2, width;
  const at::Tensor x1, x2;
};

at::Tensor cdist_forward(const at::Tensor& x1, const at::Tensor& x2, double p, std::optional<int64_t> mode) {
  TORCH_CHECK(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  TORCH_CHECK(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  TORCH_CHECK(x1.size(-1) == x2.size(-1), "X1 and X2 must have the same number of columns. X1: ", x1.size(-1),
              " X2: ", x2.size(-1));
  check_floating(x1, x2);
  TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
  TORCH_CHECK(mode.value_or(0) >= 0 && mode.value_or(0) <= 2, "possible modes: 0, 1, 2, but was: ", mode.value_or(0));
  const Sets sets(x1, x2);
  const at::Tensor distances = empty_tensor(sets.shape(sets.rows1, sets.rows2), {}, word_dtype(x1.scalar_type()));
  run(kDistance, at::kFloat, {distances.numel(), sets.width}, {sets.x1, sets.x2, distances, {}, {}},
      {sets.rows1, sets.rows2, sets.width, bits_of(p)}, metric(p));
  return distances.to(x1.scalar_type());
}

at::Tensor cdist_backward(const at::Tensor& grad, const at::Tensor& x1, const at::Tensor& x2, double p,
                          const at::Tensor& distances) {
  const Sets sets(x1, x2);
  const at::Tensor result = empty_tensor(sets.x1.sizes(), {}, word_dtype(x1.scalar_type()));
  run(kDistance, at::kFloat, {result.numel(), sets.rows2},
      {sets.x1, sets.x2, result, grad.contiguous(), distances.contiguous()},
      {sets.rows1, sets.rows2, sets.width, bits_of(p)}, metric(p) | kBackward);
  return result.to(x1.scalar_type());
}

at::Tensor pdist_forward(const at::Tensor& self, double p) {
  TORCH_CHECK(self.is_contiguous(), "_pdist_forward requires contiguous input");
  const int64_t rows = self.size(0), width = self.size(1), pairs = rows < 2 ? 0 : rows * (rows - 1) / 2;
  const at::Tensor distances = empty_tensor({pairs}, {}, word_dtype(self.scalar_type()));
  run(kDistance, at::kFloat, {pairs == 0 ? 0 : rows * rows, width}, {self, self, distances, {}, {}},
      {rows, rows, width, bits_of(p)}, metric(p) | kPairs);
  return distances.to(self.scalar_type());
}

at::Tensor pdist_backward(const at::Tensor& grad, const at::Tensor& self, double p, const at::Tensor& distances) {
  TORCH_CHECK(self.is_contiguous(), "_pdist_backward requires self to be contiguous");
  TORCH_CHECK(distances.is_contiguous(), "_pdist_backward requires pdist to be contiguous");
  const int64_t rows = self.size(0), width = self.size(1);
  const at::Tensor result = empty_tensor(self.sizes(), {}, word_dtype(self.scalar_type()));
  run(kDistance, at::kFloat, {result.numel(), rows}, {self, self, result, grad.contiguous(), distances},
      {rows, rows, width, bits_of(p)}, metric(p) | kBackward | kPairs);
  return result.to(self.scalar_type());
}

constexpr PointwiseRow kCross = make_row("linalg_cross", "sub(mul(a, b), mul(c, d))");

struct Cross {
  static void run(Structured<at::meta::structured_linalg_cross>& op, const at::Tensor& self, const at::Tensor& other,
                  int64_t dim) {
    op.meta(self, other, dim);
    const at::Tensor& out = op.outputs[0];
    const at::Tensor a = self.expand(out.sizes()), b = other.expand(out.sizes());
    const bool shared = buffer_of(out) == buffer_of(a) || buffer_of(out) == buffer_of(b);
    const at::Tensor result = shared ? empty_tensor(out.sizes(), {}, out.scalar_type()) : out;
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t next = (i + 1) % 3, last = (i + 2) % 3;
      auto iterator = at::TensorIteratorConfig()
                          .add_owned_output(result.select(dim, i))
                          .add_owned_const_input(a.select(dim, next))
                          .add_owned_const_input(b.select(dim, last))
                          .add_owned_const_input(a.select(dim, last))
                          .add_owned_const_input(b.select(dim, next))
                          .resize_outputs(false)
                          .build();
      elementwise(iterator, kCross, out.scalar_type());
    }
    if (shared) out.copy_(result);
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&cdist_forward>(library, "_cdist_forward");
  native<&cdist_backward>(library, "_cdist_backward");
  native<&pdist_forward>(library, "_pdist_forward");
  native<&pdist_backward>(library, "_pdist_backward");
  native<&Forms<Cross>::functional>(library, "linalg_cross");
  native<&Forms<Cross>::out>(library, "linalg_cross.out");
}

}  // namespace
}  // namespace torch_webgpu
