// As norm_backward.wgsl, of rows that are kept.
struct Known { mean: f32, level: f32, slope: f32, scale: f32, }
struct Sums { grad: vec4<f32>, product: vec4<f32>, }

fn no_sums() -> Sums { return Sums(vec4<f32>(), vec4<f32>()); }

fn fold(p: Sums, known: Known, block: u32, x: Pair, grad: Pair, weight: Pair, bias: Pair) -> Sums {
  let g = cut(Pair(grad.a * weight.a, grad.b * weight.b), place(block), 0.0);
  let d = cut(Pair(x.a - known.mean, x.b - known.mean), place(block), 0.0);
  return Sums(p.grad + g.a + g.b, fma(g.a, d.a, fma(g.b, d.b, p.product)));
}

fn result_pair(known: Known, x: Pair, grad: Pair, weight: Pair, bias: Pair) -> Pair {
  return Pair((grad.a * weight.a - known.level - (x.a - known.mean) * known.slope) * known.scale,
              (grad.b * weight.b - known.level - (x.b - known.mean) * known.slope) * known.scale);
}

fn walk(row: u32, blocks: u32) {
  let start = start_of_x(row);
  let grads = start_of_grad(row);
  for (var n = 0u; n < blocks; n++) { keep_row(n, pair_of_x(start, place(n)), pair_of_grad(grads, place(n))); }
  let size = f32(length());
  let mean = load_mean(row / share() % period());
  let scale = load_scale(row);
  let p = fold_kept(Known(mean, 0.0, 0.0, 0.0));
  let all = total((p.grad.x + p.grad.y) + (p.grad.z + p.grad.w));
  let moment = total((p.product.x + p.product.y) + (p.product.z + p.product.w));
  if (SUMS && lane_index == 0u) {
    store_total(row, all);
    store_moment(row, moment);
  }
  let known = Known(mean, select(0.0, all / size, CENTERED), moment / size * scale * scale, scale);
  let to = start_of_out(row);
  for (var n = 0u; n < blocks; n++) { store_pair(to, place(n), result_kept(n, known)); }
}
