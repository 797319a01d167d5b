// Keeps the elements.
fn take_block(p: Stat, row: Row, n: u32) -> Stat {
  let i = place(n);
  let x = cut(Pair(load_a(row.a, i), load_a(row.a, i + WORKGROUP)), i, beyond());
  keep_row(n, x);
  return take_two(p, x.a, x.b, vec4<f32>(), vec4<f32>());
}

fn result_pair(known: Known, x: Pair) -> Pair {
  return Pair(result(known, x.a, vec4<f32>()), result(known, x.b, vec4<f32>()));
}
