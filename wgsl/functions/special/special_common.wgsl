// needs: angle
// Shared by several special functions. A function of t is a polynomial fitted to a range that t = -1 to 1 spans.

fn sinpi_core(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, 1.70704683e-9, -2.14489331e-7), 1.89568292e-5), -1.092432e-3),
      0.0364531056), -0.56970368), 2.53432426);
}
fn log1p_rest(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -1.9078571e-5,
      4.05975251e-5), -1.99786283e-5), 4.41970784e-5), -1.90467595e-4), 4.17918715e-4), -8.63346125e-4),
      1.94317144e-3), -4.46508939e-3), 0.010418365), -0.0249999492), 0.0624998926), -0.166666667), 0.500000001);
}
fn erfcx_core(t: f32) -> f32 {
  return fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t,
      -9.86998522e-7, -1.87898791e-5), -1.67917071e-5), 1.2443701e-4), 2.16792134e-4), -4.34255578e-4),
      -1.46079898e-3), 1.2632122e-3), 8.72345674e-3), -8.03232208e-3), -0.0542200736), 0.164051124),
      -0.166030396), -0.0927638224), 1.27697838);
}
// sin(pi x), exact in the reduction.
fn sinpi(x: f32) -> f32 {
  let r = x - 2.0 * round(0.5 * x);
  let a = min(abs_f32(r), 1.0 - abs_f32(r));
  let s = a * sinpi_core(fma(8.0, a * a, -1.0));
  return select(s, -s, r < 0.0);
}
fn cospi(x: f32) -> f32 { return sinpi(0.5 - abs_f32(x - 2.0 * round(0.5 * x))); }

// Sine and cosine. The parts of pi / 2 have so few bits that their products with n are exact; n is made anew for each,
// or compilers would join the products.
fn reduce_small(x: f32) -> Angle {
  let n = round(x * 0.636619772);
  let k = i32(n);
  var r = fma(n, -1.5703125, x);
  r = fma(f32(k), -4.83512878e-4, r);
  r = fma(f32(k * 2), -1.56927854e-07, r);
  return Angle(fma(f32(k * 4), -1.5192736e-11, r), k);
}
fn sin_cos(x: f32) -> vec2<f32> {
  var angle: Angle;
  if (abs_f32(x) > 1024.0) {
    angle = reduce_large(x);
  } else {
    angle = reduce_small(x);
  }
  let r = angle.rest;
  let z = r * r;
  let s = fma(r * z, fma(z, fma(z, fma(z, 2.7173075e-6, -1.98391981e-4), 8.3333288e-3), -0.16666667), r);
  let c = fma(z, fma(z, fma(z, fma(z, fma(z, -2.7173048e-7, 2.47989235e-5), -1.388888e-3), 0.041666667), -0.5),
      1.0);
  let turned = select(vec2<f32>(s, c), vec2<f32>(c, -s), (angle.quarter & 1) == 1);
  return select(turned, -turned, (angle.quarter & 2) == 2);
}

// The same number, but no compiler knows: the first parameter is the number of steps, below 2^31.
fn separate(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ (params[0].x >> 31u)); }

// a * b + c rounded once, as the CPU's compiler has it, where fma() may round twice.
fn fused(a: f32, b: f32, c: f32) -> f32 {
  let product = separate(a * b);
  if (!(abs_f32(product) < 1e37)) { return product + c; }
  let a0 = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
  let b0 = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
  let a1 = a - a0;
  let b1 = b - b0;
  let rest = ((separate(a0 * b0) - product) + separate(a0 * b1) + separate(a1 * b0)) + a1 * b1;
  let sum = separate(product + c);
  let added = separate(sum - product);
  return sum + (rest + ((product - separate(sum - added)) + (c - added)));
}

fn special_log1p(x: f32) -> f32 {
  if (abs_f32(x) <= 0.5) { return fma(-x * x, log1p_rest(2.0 * x), x); }
  return log_f32(1.0 + x);
}

// exp(-x^2) with the rounding error of the square made good.
fn exp_minus_square(x: f32) -> f32 {
  let head = bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
  return exp_f32(-head * head) * exp_f32((head - x) * (head + x));
}

// exp(x^2) erfc(x) for x >= 0.
fn erfcx_positive(x: f32) -> f32 {
  if (x > 1e4) { return 0.564189584 / x; }
  return erfcx_core((x - 2.0) / (x + 2.0)) / fma(2.0, x, 1.0);
}
fn special_erfc(x: f32) -> f32 {
  let tail = erfcx_positive(abs_f32(x)) * exp_minus_square(min(abs_f32(x), 20.0));
  return select(tail, 2.0 - tail, x < 0.0);
}
