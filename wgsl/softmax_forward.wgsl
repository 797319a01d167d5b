// exp(x) / sum(exp(x)) and its logarithm, with the largest element taken off.

// A finite start: with -inf, a row that begins with -inf would give NaN.
fn no_stat() -> Stat { return Stat(-3.4028234e38, 0.0); }

// exp of x <= 0, or NaN; what would be denormal is 0.
fn exp_below(x: vec4<f32>) -> vec4<f32> {
  let t = select(x, vec4<f32>(-87.3), x < vec4<f32>(-87.3));
  let n = round(t * 1.44269504);
  let k = vec4<i32>(n);
  // vec4<f32>(k) is n, but not to a compiler that would join the two products and lose the low part of ln 2.
  let r = fma(vec4<f32>(k), vec4<f32>(-1.42860677e-6), fma(n, vec4<f32>(-0.693145752), t));
  var p = fma(r, vec4<f32>(1.38888889e-3), vec4<f32>(8.33333333e-3));
  p = fma(r, p, vec4<f32>(4.16666667e-2));
  p = fma(r, p, vec4<f32>(1.66666667e-1));
  p = fma(r, p, vec4<f32>(0.5));
  p = fma(r, fma(r, p, vec4<f32>(1.0)), vec4<f32>(1.0));
  let y = p * bitcast<vec4<f32>>((k + 127) << vec4<u32>(23u));
  return select(y, vec4<f32>(), x < vec4<f32>(-87.3));
}

fn take(p: Stat, a: vec4<f32>, b: vec4<f32>) -> Stat {
  let most = max(p.most, max(max(a.x, a.y), max(a.z, a.w)));
  let e = exp_below(a - most);
  return Stat(most, fma(p.sum, exp_below(vec4<f32>(p.most - most)).x, (e.x + e.y) + (e.z + e.w)));
}

fn join(p: Stat, q: Stat) -> Stat {
  let most = max(p.most, q.most);
  let e = exp_below(vec4<f32>(p.most - most, q.most - most, 0.0, 0.0));
  return Stat(most, p.sum * e.x + q.sum * e.y);
}

// A row without anything above -inf has no answer.
fn constant_of(p: Stat) -> vec2<f32> {
  if (p.sum == 0.0) { return vec2<f32>(p.most, nan_f32()); }
  if (LOG) { return vec2<f32>(p.most, log_f32(p.sum)); }
  return vec2<f32>(p.most, 1.0 / p.sum);
}

fn result(k: vec2<f32>, a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  if (LOG) { return a - k.x - k.y; }
  return exp_below(a - k.x) * k.y;
}
