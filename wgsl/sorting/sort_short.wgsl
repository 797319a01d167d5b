// Lines of a few elements: an invocation for each, which counts those that go before it.
fn run(task: u32) {
  let line = task / length();
  let own = task % length();
  let base = line / inner() * (length() * inner()) + line % inner();
  let value = load_input(base + own * inner());
  let words = ordered_key(value);
  var rank = 0u;
  for (var i = 0u; i < length(); i++) {
    let other = ordered_key(load_input(base + i * inner()));
    rank += u32(goes_before(other, words) || (i < own && all(other == words)));
  }
  let at = rank - first();
  if (rank < first() || at >= taken()) { return; }
  let place = (line / inner() * taken() + at) * inner() + line % inner();
  store_values(place, value);
  store_indices(place, own);
}
