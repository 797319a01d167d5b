// The first walk over a row: its largest element and its sum of exponentials.
struct Stat { most: f32, sum: f32, }

fn fold_row(row: Row, first: u32, step: u32) -> Stat {
  var p = no_stat();
  var i = first;
  for (; i + step < steps(); i += 2u * step) {
    p = take_two(p, load_a(row.a, i), load_a(row.a, i + step), load_b(row.b, i), load_b(row.b, i + step));
  }
  if (i < steps()) { p = take(p, load_a(row.a, i), load_b(row.b, i)); }
  return p;
}

fn write_row(row: Row, stat: Stat, first: u32, step: u32) {
  let k = constant_of(stat);
  var i = first;
  for (; i + step < steps(); i += 2u * step) {
    let a0 = load_a(row.a, i);
    let a1 = load_a(row.a, i + step);
    let b0 = load_b(row.b, i);
    let b1 = load_b(row.b, i + step);
    store_out(row.out, i, result(k, a0, b0));
    store_out(row.out, i + step, result(k, a1, b1));
  }
  if (i < steps()) { store_out(row.out, i, result(k, load_a(row.a, i), load_b(row.b, i))); }
}
