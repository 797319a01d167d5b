// Merges neighbouring sorted runs of rows: a row's place is its own in its run and the number of those that go before it
// in the other.
fn goes_before(a: u32, b: u32) -> i32 {
  for (var i = 0u; i < width(); i++) {
    let x = load_input(a * width() + i);
    let y = load_input(b * width() + i);
    if (less(x, y)) { return 1; }
    if (less(y, x)) { return -1; }
  }
  return 0;
}

fn run(task: u32) {
  let row = load_order(task);
  let own = task / run_length() * run_length();
  let is_left = (task / run_length()) % 2u == 0u;
  let other = select(own - run_length(), own + run_length(), is_left);
  var low = min(other, tasks());
  var high = min(other + run_length(), tasks());
  let begin = low;
  while (low < high) {
    let middle = (low + high) / 2u;
    let before = goes_before(load_order(middle), row);
    if (before == 1 || (before == 0 && !is_left)) { low = middle + 1u; } else { high = middle; }
  }
  store_moved(min(own, other) + (task - own) + (low - begin), row);
}
