// Mean and spread of each row, then (x - mean) * scale * weight + bias, of rows that are kept: a first mean, then the
// distances from it, whose own mean is what rounding left.
struct Known { mean: f32, scale: f32, }
struct Sums { sum: vec4<f32>, squares: vec4<f32>, }

fn no_sums() -> Sums { return Sums(vec4<f32>(), vec4<f32>()); }

fn fold(p: Sums, known: Known, block: u32, x: Pair, weight: Pair, bias: Pair) -> Sums {
  let d = cut(Pair(x.a - known.mean, x.b - known.mean), place(block), 0.0);
  return Sums(p.sum + d.a + d.b, fma(d.a, d.a, fma(d.b, d.b, p.squares)));
}

fn result_pair(known: Known, x: Pair, weight: Pair, bias: Pair) -> Pair {
  return Pair(fma((x.a - known.mean) * known.scale, weight.a, bias.a),
              fma((x.b - known.mean) * known.scale, weight.b, bias.b));
}

fn load_row(start: u32, blocks: u32) -> f32 {
  var sum = vec4<f32>();
  for (var n = 0u; n < blocks; n++) {
    let x = cut(pair_of_x(start, place(n)), place(n), 0.0);
    sum += x.a + x.b;
    keep_row(n, x);
  }
  return select(0.0, total((sum.x + sum.y) + (sum.z + sum.w)) / f32(length()), CENTERED);
}

fn statistics(row: u32, about: f32) -> Known {
  let size = f32(length());
  let p = fold_kept(Known(about, 0.0));
  let left = select(0.0, total((p.sum.x + p.sum.y) + (p.sum.z + p.sum.w)), CENTERED);
  let squares = total((p.squares.x + p.squares.y) + (p.squares.z + p.squares.w));
  // Rounding may leave less than nothing, and max() would lose NaN.
  let moment = abs(squares - left * (left / size));
  let known = Known(about + left / size, 1.0 / sqrt(moment / size + epsilon()));
  if (lane_index == 0u) {
    store_mean(row, known.mean);
    store_scale(row, known.scale);
    store_moment(row, moment);
  }
  return known;
}

fn walk(row: u32, blocks: u32) {
  let known = statistics(row, load_row(start_of_x(row), blocks));
  let to = start_of_out(row);
  for (var n = 0u; n < blocks; n++) { store_pair(to, place(n), result_kept(n, known)); }
}
