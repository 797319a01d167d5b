// Folds every step-th element of [first, last), in blocks, so that rounding errors grow with the block and not with all.
const BLOCK = 128u;

fn fold(base: u32, first: u32, last: u32, step: u32) -> Acc {
  var total = identity();
  var r = first;
  while (r < last) {
    var block = identity();
    for (var n = 0u; n < BLOCK && r < last; n++) {
      block = combine(block, element(base, r));
      r += step;
    }
    total = combine(total, block);
  }
  return total;
}
