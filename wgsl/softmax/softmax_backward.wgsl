// Gradients, of the gradient a and the forward's result b.
fn no_stat() -> Stat { return Stat(0.0, 0.0); }

fn take(p: Stat, a: vec4<f32>, b: vec4<f32>) -> Stat {
  let t = select(a * b, a, vec4<bool>(LOG));
  return Stat(0.0, p.sum + ((t.x + t.y) + (t.z + t.w)));
}

fn take_two(p: Stat, a0: vec4<f32>, a1: vec4<f32>, b0: vec4<f32>, b1: vec4<f32>) -> Stat {
  let t = select(fma(a0, b0, a1 * b1), a0 + a1, vec4<bool>(LOG));
  return Stat(0.0, p.sum + ((t.x + t.y) + (t.z + t.w)));
}

fn join(p: Stat, q: Stat) -> Stat { return Stat(0.0, p.sum + q.sum); }

fn constant_of(p: Stat) -> vec2<f32> { return vec2<f32>(0.0, p.sum); }

fn result(k: vec2<f32>, a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  if (LOG) { return a - exp_below(b) * k.y; }
  return (a - k.y) * b;
}
