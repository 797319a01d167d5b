// needs: reduce_quads
// Folds every step-th quad of [first, last), in blocks, so that rounding errors grow with the block and not with all.
const BLOCK = 128u;

fn fold_quads(base: u32, first: u32, last: u32, step: u32) -> Quad {
  var total = no_quad();
  var r = first;
  while (r < last) {
    var block = no_quad();
    for (var n = 0u; n < BLOCK && r < last; n++) {
      block = combine_quads(block, quad(base, r));
      r += step;
    }
    total = combine_quads(total, block);
  }
  return total;
}

fn fold(base: u32, first: u32, last: u32, step: u32) -> Acc {
  let total = fold_quads(base, first, last, step);
  return combine(combine(total.a, total.b), combine(total.c, total.d));
}
