// Each element's key, line by line.
fn run(task: u32) {
  let line = task / length();
  let place = line / inner() * (length() * inner()) + line % inner() + (task % length()) * inner();
  let words = ordered_key(load_input(place));
  store_keys(task * WORDS, words.x);
  if (WORDS == 2u) { store_keys(task * WORDS + 1u, words.y); }
}
