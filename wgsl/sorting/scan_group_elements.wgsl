// needs: scan_group
// An item is an element, or the accumulator of a block.
fn scanned(line: u32, i: u32, end: u32) -> Acc {
  let place = line * length() + min(i, end - 1u);
  if (i >= end) { return identity(); }
  if (VARIANT == JOIN) { return Acc(load_part(place), load_tag(place)); }
  return map(load_input(place), i);
}
fn last_of(p: Acc) -> Acc { return p; }
fn keep(line: u32, i: u32, before: Acc, item: Acc) {
  let place = line * length() + i;
  let here = combine(before, item);
  if (VARIANT == JOIN) {
    store_part(place, here.x);
    store_tag(place, here.y);
  } else {
    store_output(place, finish(here));
    store_index(place, here.y);
  }
}
