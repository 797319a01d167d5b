// Short lines: an element's place is the number of those before it.
const WORDS = VARIANT;

fn run(task: u32) {
  let line = task / length() * length();
  let low = load_keys(task * WORDS);
  var rank = line;
  if (WORDS == 1u) {
    for (var other = line; other < line + length(); other++) {
      let key = load_keys(other);
      rank += u32(key < low || (key == low && other < task));
    }
  } else {
    let high = load_keys(task * 2u + 1u);
    for (var other = line; other < line + length(); other++) {
      let key = vec2<u32>(load_keys(other * 2u), load_keys(other * 2u + 1u));
      let equal = key.y == high && key.x == low;
      rank += u32(key.y < high || (key.y == high && key.x < low) || (equal && other < task));
    }
  }
  store_order(rank, task);
}
