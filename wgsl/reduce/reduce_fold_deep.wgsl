// Folds every step-th item of [first, last), with eight loads under way at a time, and in blocks, so that rounding errors
// grow with the block and not with all.
const BLOCK = 16u;

fn fold_items(base: u32, first: u32, last: u32, step: u32) -> Item {
  var total = no_item();
  var r = first;
  while (r + 7u * step < last) {
    var block = no_item();
    for (var n = 0u; n < BLOCK && r + 7u * step < last; n++) {
      let a = item(base, r);
      let b = item(base, r + step);
      let c = item(base, r + 2u * step);
      let d = item(base, r + 3u * step);
      let e = item(base, r + 4u * step);
      let f = item(base, r + 5u * step);
      let g = item(base, r + 6u * step);
      let h = item(base, r + 7u * step);
      let front = combine_items(combine_items(a, b), combine_items(c, d));
      let back = combine_items(combine_items(e, f), combine_items(g, h));
      block = combine_items(block, combine_items(front, back));
      r += 8u * step;
    }
    total = combine_items(total, block);
  }
  for (; r < last; r += step) { total = combine_items(total, item(base, r)); }
  return total;
}
