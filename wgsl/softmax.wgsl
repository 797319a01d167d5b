// What a row's results depend on, gathered in a first walk: its largest element and a sum.
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
  for (var i = first; i < steps(); i += step) {
    store(row.out, i, result(k, load_a(row.a, i), load_b(row.b, i)));
  }
}
