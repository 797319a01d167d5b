// exp(x) / sum(exp(x)) and its logarithm, with the largest element taken off.

// A finite start: with -inf, a row that begins with -inf would give NaN.
fn no_stat() -> Stat { return Stat(-3.4028234e38, 0.0); }

fn largest(a: vec4<f32>) -> f32 { return max(max(a.x, a.y), max(a.z, a.w)); }
fn raised(p: Stat, most: f32, e: vec4<f32>) -> Stat {
  return Stat(most, fma(p.sum, exp_below(vec4<f32>(p.most - most)).x, (e.x + e.y) + (e.z + e.w)));
}
fn take(p: Stat, a: vec4<f32>, b: vec4<f32>) -> Stat {
  let most = max(p.most, largest(a));
  return raised(p, most, exp_below(a - most));
}
fn take_two(p: Stat, a0: vec4<f32>, a1: vec4<f32>, b0: vec4<f32>, b1: vec4<f32>) -> Stat {
  let most = max(p.most, largest(max(a0, a1)));
  return raised(p, most, exp_below(a0 - most) + exp_below(a1 - most));
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
