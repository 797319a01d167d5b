// Keeps the gradients and the probabilities.
fn take_block(p: Stat, row: Row, n: u32) -> Stat {
  let i = place(n);
  let grad = cut(Pair(load_a(row.a, i), load_a(row.a, i + WORKGROUP)), i, beyond());
  let y = cut(Pair(load_b(row.b, i), load_b(row.b, i + WORKGROUP)), i, beyond());
  keep_row(n, grad, y);
  return take_two(p, grad.a, grad.b, y.a, y.b);
}

fn result_pair(known: Known, grad: Pair, y: Pair) -> Pair {
  return Pair(result(known, grad.a, y.a), result(known, grad.b, y.b));
}
