// loops: takes long to compile
// needs: special_common
// Orthogonal polynomials by their recurrences; Chebyshev's of a high degree by angles, as the CPU does.

fn asin_core(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 1.96442572e-9, 1.66288405e-8), 1.40290965e-7),
      1.26953231e-6), 1.21165367e-5), 1.25293244e-4), 1.48594156e-3), 0.0234721962), 1.02210058);
}
// The constants are pi / 2 and pi to twice the precision.
fn special_acos(x: f32) -> f32 {
  let a = abs_f32(x);
  if (a <= 0.5) { return 1.57079637 - fma(x, asin_core(fma(8.0, x * x, -1.0)), 4.37113883e-8); }
  let h = 0.5 * (1.0 - a);
  let y = 2.0 * sqrt(h) * asin_core(fma(8.0, h, -1.0));
  return select(y, 3.14159274 - (y + 8.74227766e-8), x < 0.0);
}

// The degree: whole, and none below zero.
fn degree_of(n: f32) -> i32 { return i32_from_f32(n); }
fn sign_of_degree(n: i32) -> f32 { return select(1.0, -1.0, (n & 1) == 1); }

// p(k + 1) = 2 x p(k) - p(k - 1) from 1 and `first`.
fn chebyshev(x: f32, first: f32, n: i32) -> f32 {
  var p = 1.0;
  var q = first;
  if (n == 0) { return p; }
  for (var k = 1; k < n && !is_nan_f32(q); k++) {
    let r = fused(x + x, q, -p);
    p = q;
    q = r;
  }
  return q;
}

// `angles` is the degree beyond which the CPU takes angles.
fn chebyshev_t(x: f32, degree: f32) -> f32 {
  let n = degree_of(degree);
  if (n < 0) { return 0.0; }
  if (abs_f32(x) == 1.0) { return select(sign_of_degree(n), 1.0, x > 0.0); }
  if (n > 6 && abs_f32(x) < 1.0) { return sin_cos(f32(n) * special_acos(x)).y; }
  return chebyshev(x, x, n);
}
fn chebyshev_u(x: f32, degree: f32, angles: i32) -> f32 {
  let n = degree_of(degree);
  if (n < 0) { return 0.0; }
  let m = f32(n) + 1.0;
  if (abs_f32(x) == 1.0) { return m * select(sign_of_degree(n), 1.0, x > 0.0); }
  if (n > angles && abs_f32(x) < 1.0) {
    let angle = special_acos(x);
    return sin_cos(m * angle).x / sin_cos(angle).x;
  }
  return chebyshev(x, x + x, n);
}
fn chebyshev_v(x: f32, degree: f32, angles: i32) -> f32 {
  let n = degree_of(degree);
  if (n < 0) { return 0.0; }
  let m = f32(n) + f32(n) + 1.0;
  if (abs_f32(x) == 1.0) { return select(m * sign_of_degree(n), 1.0, x > 0.0); }
  if (n > angles && abs_f32(x) < 1.0) {
    let angle = special_acos(x);
    return sin_cos((f32(n) + 0.5) * angle).y / sin_cos(0.5 * angle).y;
  }
  return chebyshev(x, x + x - 1.0, n);
}
fn chebyshev_w(x: f32, degree: f32, angles: i32) -> f32 {
  let n = degree_of(degree);
  if (n < 0) { return 0.0; }
  let m = f32(n) + f32(n) + 1.0;
  if (abs_f32(x) == 1.0) { return select(sign_of_degree(n), m, x > 0.0); }
  if (n > angles && abs_f32(x) < 1.0) {
    let angle = special_acos(x);
    return sin_cos((f32(n) + 0.5) * angle).x / sin_cos(0.5 * angle).x;
  }
  return chebyshev(x, x + x + 1.0, n);
}

// Beyond this degree the CPU gives NaN.
const HERMITE_LIMIT = 128;

fn hermite_h(x: f32, degree: f32) -> f32 {
  let n = degree_of(degree);
  if (n < 0) { return 0.0; }
  if (n == 0) { return 1.0; }
  if (n > HERMITE_LIMIT) { return nan_f32(); }
  var p = 1.0;
  var q = x + x;
  for (var k = 1; k < n && !is_nan_f32(q); k++) {
    let r = fused(x + x, q, -(f32(2 * k) * p));
    p = q;
    q = r;
  }
  return q;
}
fn hermite_he(x: f32, degree: f32) -> f32 {
  let n = degree_of(degree);
  if (n < 0) { return 0.0; }
  if (n == 0) { return 1.0; }
  if (n > HERMITE_LIMIT) { return nan_f32(); }
  var p = 1.0;
  var q = x;
  for (var k = 1; k < n && !is_nan_f32(q); k++) {
    let r = fused(x, q, -(f32(k) * p));
    p = q;
    q = r;
  }
  return q;
}
fn laguerre_l(x: f32, degree: f32) -> f32 {
  let n = degree_of(degree);
  if (n < 0) { return 0.0; }
  if (n == 0 || x == 0.0) { return 1.0; }
  var p = 1.0;
  var q = 1.0 - x;
  for (var k = 1; k < n && !is_nan_f32(q); k++) {
    let r = fused(f32(2 * k) + (1.0 - x), q, -(f32(k) * p)) / f32(k + 1);
    p = q;
    q = r;
  }
  return q;
}
fn legendre_p(x: f32, degree: f32) -> f32 {
  let n = degree_of(degree);
  if (n < 0) { return 0.0; }
  if (abs_f32(x) == 1.0) { return select(sign_of_degree(n), 1.0, x > 0.0); }
  if (n == 0) { return 1.0; }
  var p = 1.0;
  var q = x;
  for (var k = 1; k < n && !is_nan_f32(q); k++) {
    let r = fused(f32(2 * k + 1) * x, q, -(f32(k) * p)) / f32(k + 1);
    p = q;
    q = r;
  }
  return q;
}
