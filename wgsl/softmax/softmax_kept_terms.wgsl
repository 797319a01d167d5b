// Keeps each exponential with the running maximum it was computed from.
struct Terms { a: vec4<f32>, b: vec4<f32>, most: f32, }

fn take_block(p: Stat, row: Row, n: u32) -> Stat {
  let i = place(n);
  let x = cut(Pair(load_a(row.a, i), load_a(row.a, i + WORKGROUP)), i, beyond());
  let most = max(p.most, largest(max(x.a, x.b)));
  let terms = Terms(exp_below(x.a - most), exp_below(x.b - most), most);
  keep_row(n, terms);
  return raised(p, most, terms.a + terms.b);
}

fn result_pair(known: Known, terms: Terms) -> Pair {
  let scale = exp_below(vec4<f32>(terms.most - known.x)).x * known.y;
  return Pair(terms.a * scale, terms.b * scale);
}
