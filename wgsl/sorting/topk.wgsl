// The first `taken` elements of each block of a line, in order: keys and indices.
fn load_pair(place: u32) -> vec2<u32> {
  if (WORDS == 1u) { return vec2<u32>(load_keys(place), 0u); }
  return vec2<u32>(load_keys(place * 2u), load_keys(place * 2u + 1u));
}

fn put(place: u32, words: vec2<u32>, index: u32) {
  store_keys(place * WORDS, words.x);
  if (WORDS == 2u) { store_keys(place * 2u + 1u, words.y); }
  store_indices(place, index);
}

fn run(task: u32) {
  let line = task / blocks();
  let begin = task % blocks() * span();
  let end = min(begin + span(), length());
  let base = line / inner() * (length() * inner()) + line % inner();
  let list = task * taken();
  var filled = 0u;
  var last = vec2<u32>(0u);  // the list's last key, once it is full
  for (var i = begin; i < end; i++) {
    var words = ordered_key(load_input(base + i * inner()));
    if (WORDS == 1u) { words.y = 0u; }
    if (filled == taken() && !goes_before(words, last)) { continue; }
    var at = min(filled, taken() - 1u);
    filled = max(filled, at + 1u);
    while (at > 0u) {
      let other = load_pair(list + at - 1u);
      if (!goes_before(words, other)) { break; }
      put(list + at, other, load_indices(list + at - 1u));
      at--;
    }
    put(list + at, words, i);
    if (filled == taken()) { last = load_pair(list + taken() - 1u); }
  }
  // A short block at the end of a line is filled up with what goes last.
  for (; filled < taken(); filled++) { put(list + filled, vec2<u32>(0xffffffffu), 0xffffffffu); }
}
