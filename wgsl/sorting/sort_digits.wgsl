// What the kernels of a radix sort on GPUs share. A pass puts the items of each line in the order of eight bits of their
// keys, the least significant first. A workgroup takes a block of a line. Between passes the items lie in `room`, which
// holds two copies of a plane for each word of the elements and one for their indices.
const FIRST = (VARIANT & 8u) != 0u;   // the items are still the input's
const MOVES = (VARIANT & 16u) != 0u;  // there may be further passes
const ENDS = (VARIANT & 32u) != 0u;   // this may be the last pass
const DIGITS = 256u;
const TURNS = VARIANT >> 8u;  // items of a lane; odd, so that lanes which walk runs of them meet different banks
const BLOCK = WORKGROUP * TURNS;

// Where the passes depend on the elements, `varied` has the bits in which they differ: other passes do nothing.
const CHECKED = (VARIANT & 64u) != 0u;

fn is_active(at: u32) -> bool {
  return !CHECKED || at == 0u || ((load_varied(at >> 5u) >> (at & 31u)) & (DIGITS - 1u)) != 0u;
}

fn is_last() -> bool {
  if (!ENDS || !MOVES) { return ENDS; }
  if (!CHECKED) { return shift() + 8u >= bits(); }
  for (var at = shift() + 8u; at < bits(); at += 8u) {
    if (is_active(at)) { return false; }
  }
  return true;
}

// Passes that moved items before this one.
fn passes_before() -> u32 {
  if (!CHECKED) { return shift() / 8u; }
  var count = 0u;
  for (var at = 0u; at < shift(); at += 8u) { count += u32(is_active(at)); }
  return count;
}

fn plane_of(copy: u32, word: u32) -> u32 { return ((copy & 1u) * (WORDS + 1u) + word) * total(); }

fn element_at(copy: u32, place: u32) -> vec2<u32> {
  if (FIRST) { return words_of(load_input(place)); }
  let low = load_room(plane_of(copy, 0u) + place);
  if (WORDS == 1u) { return vec2<u32>(low, 0u); }
  return vec2<u32>(low, load_room(plane_of(copy, 1u) + place));
}

fn digit_of(element: vec2<u32>) -> u32 {
  let words = ordered_key(value_of(element));
  return (select(words.x, words.y, shift() >= 32u) >> (shift() & 31u)) & (DIGITS - 1u);
}
