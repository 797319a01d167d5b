// Keeps the gradients and the probabilities.
fn probabilities(b: vec4<f32>) -> vec4<f32> {
  if (LOG) { return vec4<f32>(exp_f32(b.x), exp_f32(b.y), exp_f32(b.z), exp_f32(b.w)); }
  return b;
}

fn take_block(p: Stat, row: Row, n: u32) -> Stat {
  let i = place(n);
  let grad = cut(Pair(load_a(row.a, i), load_a(row.a, i + WORKGROUP)), i, beyond());
  let y = cut(Pair(probabilities(load_b(row.b, i)), probabilities(load_b(row.b, i + WORKGROUP))), i, beyond());
  keep_row(n, grad, y);
  return take_two(p, grad.a, grad.b, y.a, y.b);
}

fn result_pair(known: Known, grad: Pair, y: Pair) -> Pair {
  if (LOG) { return Pair(grad.a - y.a * known.y, grad.b - y.b * known.y); }
  return Pair((grad.a - known.y) * y.a, (grad.b - known.y) * y.b);
}
