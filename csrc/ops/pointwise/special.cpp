// The table of special functions: formulas in wgsl/special/.
#include <ATen/native/Resize.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/digamma_meta.h>
#include <ATen/ops/i0_meta.h>
#include <ATen/ops/igamma_meta.h>
#include <ATen/ops/igammac_meta.h>
#include <ATen/ops/lgamma_meta.h>
#include <ATen/ops/mvlgamma.h>
#include <ATen/ops/polygamma_meta.h>
#include <ATen/ops/special_airy_ai_meta.h>
#include <ATen/ops/special_bessel_j0_meta.h>
#include <ATen/ops/special_bessel_j1_meta.h>
#include <ATen/ops/special_bessel_y0_meta.h>
#include <ATen/ops/special_bessel_y1_meta.h>
#include <ATen/ops/special_chebyshev_polynomial_t_meta.h>
#include <ATen/ops/special_chebyshev_polynomial_u_meta.h>
#include <ATen/ops/special_chebyshev_polynomial_v_meta.h>
#include <ATen/ops/special_chebyshev_polynomial_w_meta.h>
#include <ATen/ops/special_entr_meta.h>
#include <ATen/ops/special_erfcx_meta.h>
#include <ATen/ops/special_hermite_polynomial_h_meta.h>
#include <ATen/ops/special_hermite_polynomial_he_meta.h>
#include <ATen/ops/special_i0e_meta.h>
#include <ATen/ops/special_i1_meta.h>
#include <ATen/ops/special_i1e_meta.h>
#include <ATen/ops/special_laguerre_polynomial_l_meta.h>
#include <ATen/ops/special_legendre_polynomial_p_meta.h>
#include <ATen/ops/special_log_ndtr_meta.h>
#include <ATen/ops/special_modified_bessel_i0_meta.h>
#include <ATen/ops/special_modified_bessel_i1_meta.h>
#include <ATen/ops/special_modified_bessel_k0_meta.h>
#include <ATen/ops/special_modified_bessel_k1_meta.h>
#include <ATen/ops/special_ndtri_meta.h>
#include <ATen/ops/special_scaled_modified_bessel_k0_meta.h>
#include <ATen/ops/special_scaled_modified_bessel_k1_meta.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_t_meta.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_u_meta.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_v_meta.h>
#include <ATen/ops/special_shifted_chebyshev_polynomial_w_meta.h>
#include <ATen/ops/special_spherical_bessel_j0_meta.h>
#include <ATen/ops/special_xlog1py_meta.h>
#include <ATen/ops/special_zeta_meta.h>

#include <cmath>

#include "ops/pointwise/table.h"

namespace torch_webgpu {
namespace {

constexpr PointwiseRow kDigamma = make_row("digamma", "special_digamma(a)", PointwiseRow::none, "gamma");
constexpr PointwiseRow kTrigamma = make_row("trigamma", "special_trigamma(a)", PointwiseRow::none, "gamma");
constexpr PointwiseRow kPolygamma = make_row("polygamma", "s1 * special_zeta(s0, a)", PointwiseRow::none, "gamma");

struct Polygamma {
  using Meta = at::meta::structured_polygamma;
  static void run(Structured<Meta>& op, int64_t n, const at::Tensor& self) {
    op.meta(n, self);
    if (n < 2) return elementwise(op, n == 0 ? kDigamma : kTrigamma, op.common_dtype());
    // (-1)^(n + 1) n! zeta(n + 1, x)
    const at::Scalar order(static_cast<double>(n + 1)), factor((n % 2 ? 1 : -1) * std::tgamma(n + 1.0));
    elementwise(op, kPolygamma, op.common_dtype(), {&order, &factor});
  }
};

#define SPECIAL(name, formula, file)                                                        \
  {                                                                                         \
    static constexpr PointwiseRow row = make_row(#name, formula, PointwiseRow::none, file); \
    register_forms<Pointwise<at::meta::structured_##name, row>>(library, #name, "", "out"); \
  }

at::Tensor& mvlgamma_out(const at::Tensor& self, int64_t p, at::Tensor& out) {
  const at::Tensor result = at::mvlgamma(self, p);
  TORCH_CHECK(at::can_cast(result.scalar_type(), out.scalar_type()), "mvlgamma: result type ", self.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

constexpr PointwiseRow kKaiser =
    make_row("kaiser_window", "special_i0(s1 * sqrt(max(1.0 - (a / s0 - 1.0) * (a / s0 - 1.0), 0.0))) / special_i0(s1)",
             kFloats, "bessel_modified");

void kaiser_window(at::TensorIteratorBase& iterator, int64_t length, double beta) {
  const at::Scalar half(static_cast<double>(length - 1) / 2), shape(beta);
  elementwise(iterator, kKaiser, iterator.common_dtype(), {&half, &shape});
}

// clang-format off
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  //       name                                        formula                                file
  SPECIAL( special_erfcx,                              "special_erfcx(a)",                      "normal")
  SPECIAL( special_ndtri,                              "special_ndtri(a)",                      "normal")
  SPECIAL( special_log_ndtr,                           "special_log_ndtr(a)",                   "normal")
  SPECIAL( special_entr,                               "special_entr(a)",                       "normal")
  SPECIAL( special_xlog1py,                            "special_xlog1py(a, b)",                 "normal")
  SPECIAL( lgamma,                                     "special_lgamma(a)",                     "gamma")
  SPECIAL( digamma,                                    "special_digamma(a)",                    "gamma")
  SPECIAL( special_zeta,                               "special_zeta(a, b)",                    "gamma")
  SPECIAL( igamma,                                     "special_igamma(a, b)",                  "gamma")
  SPECIAL( igammac,                                    "special_igammac(a, b)",                 "gamma")
  SPECIAL( special_bessel_j0,                          "bessel_j0(a)",                          "bessel")
  SPECIAL( special_bessel_j1,                          "bessel_j1(a)",                          "bessel")
  SPECIAL( special_bessel_y0,                          "bessel_y0(a)",                          "bessel")
  SPECIAL( special_bessel_y1,                          "bessel_y1(a)",                          "bessel")
  SPECIAL( special_spherical_bessel_j0,                "spherical_bessel_j0(a)",                "bessel")
  SPECIAL( i0,                                         "special_i0(a)",                         "bessel_modified")
  SPECIAL( special_i0e,                                "special_i0e(a)",                        "bessel_modified")
  SPECIAL( special_i1,                                 "special_i1(a)",                         "bessel_modified")
  SPECIAL( special_i1e,                                "special_i1e(a)",                        "bessel_modified")
  SPECIAL( special_modified_bessel_i0,                 "special_i0(a)",                         "bessel_modified")
  SPECIAL( special_modified_bessel_i1,                 "special_i1(a)",                         "bessel_modified")
  SPECIAL( special_modified_bessel_k0,                 "bessel_k0(a)",                          "bessel_modified")
  SPECIAL( special_modified_bessel_k1,                 "bessel_k1(a)",                          "bessel_modified")
  SPECIAL( special_scaled_modified_bessel_k0,          "scaled_bessel_k0(a)",                   "bessel_modified")
  SPECIAL( special_scaled_modified_bessel_k1,          "scaled_bessel_k1(a)",                   "bessel_modified")
  SPECIAL( special_airy_ai,                            "airy_ai(a)",                            "bessel_modified")
  SPECIAL( special_chebyshev_polynomial_t,             "chebyshev_t(a, b)",                     "polynomials")
  SPECIAL( special_chebyshev_polynomial_u,             "chebyshev_u(a, b, 8)",                  "polynomials")
  SPECIAL( special_chebyshev_polynomial_v,             "chebyshev_v(a, b, 8)",                  "polynomials")
  SPECIAL( special_chebyshev_polynomial_w,             "chebyshev_w(a, b, 8)",                  "polynomials")
  SPECIAL( special_shifted_chebyshev_polynomial_t,     "chebyshev_t(a + a - 1.0, b)",           "polynomials")
  SPECIAL( special_shifted_chebyshev_polynomial_u,     "chebyshev_u(a + a - 1.0, b, 6)",        "polynomials")
  SPECIAL( special_shifted_chebyshev_polynomial_v,     "chebyshev_v(a + a - 1.0, b, 6)",        "polynomials")
  SPECIAL( special_shifted_chebyshev_polynomial_w,     "chebyshev_w(a + a - 1.0, b, 6)",        "polynomials")
  SPECIAL( special_hermite_polynomial_h,               "hermite_h(a, b)",                       "polynomials")
  SPECIAL( special_hermite_polynomial_he,              "hermite_he(a, b)",                      "polynomials")
  SPECIAL( special_laguerre_polynomial_l,              "laguerre_l(a, b)",                      "polynomials")
  SPECIAL( special_legendre_polynomial_p,              "legendre_p(a, b)",                      "polynomials")
  native<&mvlgamma_out>(library, "mvlgamma.out");
  at::native::kaiser_window_stub.set_privateuse1_dispatch_ptr(&kaiser_window);
  native<&Forms<Polygamma>::functional>(library, "polygamma");
  native<&Forms<Polygamma>::out>(library, "polygamma.out");
}
// clang-format on

}  // namespace
}  // namespace torch_webgpu
