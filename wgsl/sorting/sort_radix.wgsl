// One digit of a radix sort, least significant first: a task counts the digits of one block of a line, or, once the counts
// of [line][digit][block] are summed up, moves the block's elements to their places. From the last to the first, so that
// equal ones keep their order.
const BITS = VARIANT & 15u;
const WORDS = (VARIANT >> 4u) & 3u;
const MOVES = ((VARIANT >> 6u) & 1u) == 1u;
const FIRST = ((VARIANT >> 7u) & 1u) == 1u;  // nothing has moved: the order is the elements' own
const DIGITS = 1u << BITS;

fn digit_of(place: u32) -> u32 {
  if (WORDS == 1u) { return (load_keys(place) >> shift()) & (DIGITS - 1u); }
  return (load_keys(place * 2u + (shift() >> 5u)) >> (shift() & 31u)) & (DIGITS - 1u);
}

fn run(task: u32) {
  let line = task / blocks();
  let block = task % blocks();
  let counter = line * DIGITS * blocks() + block;
  let begin = line * length() + min(block * span(), length());
  let end = line * length() + min(block * span() + span(), length());
  if (MOVES) {
    for (var next = end; next > begin; next--) {
      let place = next - 1u;
      let at = counter + digit_of(place) * blocks();
      let target_place = load_counts(at) - 1u;
      store_counts(at, target_place);
      if (FIRST) { store_moved_order(target_place, place); } else { store_moved_order(target_place, load_order(place)); }
      for (var word = 0u; word < WORDS; word++) {
        store_moved_keys(target_place * WORDS + word, load_keys(place * WORDS + word));
      }
    }
  } else {
    for (var digit = 0u; digit < DIGITS; digit++) { store_counts(counter + digit * blocks(), 0u); }
    for (var place = begin; place < end; place++) {
      let at = counter + digit_of(place) * blocks();
      store_counts(at, load_counts(at) + 1u);
    }
  }
}
