// Lines, or blocks of a line, an invocation for each: neighbouring runs are merged until there is one. For software
// adapters, where barriers cost more than the parallel steps between them save. The elements are all of the line or
// those chosen before, in runs of `sorted`; the first of each block are chosen for another round, or are the result.
const CHOSEN = (VARIANT & 8u) != 0u;
const LAST = (VARIANT & 16u) != 0u;
const NONE = 0xffffffffu;  // the index of what fills up a block: it goes last

fn key_of(base: u32, own: u32) -> vec2<u32> {
  if (own == NONE) { return vec2<u32>(NONE); }
  return ordered_key(load_input(base + own * inner()));
}

// The element at `i` of what is merged: at first the block's own order, then one of its two lists.
fn candidate(i: u32, fresh: bool, line: u32, begin: u32, list: u32) -> u32 {
  if (!fresh) { return load_order(list + i); }
  if (CHOSEN) { return load_chosen(line * width() + begin + i); }
  return begin + i;
}

fn run(task: u32) {
  let line = task / blocks();
  let begin = task % blocks() * span();
  let count = min(span(), width() - begin);
  let base = line / inner() * (length() * inner()) + line % inner();
  var list = task * span() * 2u;
  var other = list + span();
  var fresh = true;
  for (var size = sorted(); ; size *= 2u) {
    let final_level = size >= count || size * 2u >= count;
    let stop = select(count, min(count, first() + taken()), final_level);
    var at = 0u;
    while (at < stop) {
      var left = at;
      let middle = min(at + size, count);
      var right = middle;
      let end = min(middle + size, count);
      let until = min(end, stop);
      var a = candidate(left, fresh, line, begin, list);
      var key_a = key_of(base, a);
      var b = NONE;
      var key_b = vec2<u32>(NONE);
      if (right < end) {
        b = candidate(right, fresh, line, begin, list);
        key_b = key_of(base, b);
      }
      for (; at < until; at++) {
        let from_right = right < end && (left >= middle || goes_before(key_b, key_a));
        let own = select(a, b, from_right);
        if (!final_level) {
          store_order(other + at, own);
        } else if (!LAST) {
          store_next(task * taken() + at, own);
        } else if (at >= first()) {
          let place = (line / inner() * taken() + at - first()) * inner() + line % inner();
          store_values(place, load_input(base + own * inner()));
          store_indices(place, own);
        }
        if (from_right) { right++; } else { left++; }
        if (from_right && right < end) {
          b = candidate(right, fresh, line, begin, list);
          key_b = key_of(base, b);
        }
        if (!from_right && left < middle) {
          a = candidate(left, fresh, line, begin, list);
          key_a = key_of(base, a);
        }
      }
    }
    if (final_level) { break; }
    let read = list;
    list = other;
    other = read;
    fresh = false;
  }
  if (!LAST) {
    for (var i = count; i < taken(); i++) { store_next(task * taken() + i, NONE); }
  }
}
