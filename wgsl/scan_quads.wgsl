// As scan.wgsl, for lines of quads of neighbours.
const WHOLE = 0u;
const PARTS = 1u;
const CARRY = 2u;
const BLOCK = 32u;

fn run(task: u32) {
  let block = task % blocks();
  let base = task / blocks() * length();
  var quad = base + block * span();
  let end = min(quad + span(), base + length());
  var total = identity();
  if (VARIANT == CARRY && block > 0u) { total = Acc(load_part(task - 1u), load_tag(task - 1u)); }
  while (quad < end) {
    var local = identity();
    let stop = min(quad + BLOCK, end);
    for (; quad < stop; quad++) {
      let values = load_input(quad);
      let a = combine(local, map(values.x, 0u));
      let b = combine(a, map(values.y, 0u));
      let c = combine(b, map(values.z, 0u));
      local = combine(c, map(values.w, 0u));
      if (VARIANT != PARTS) {
        store_output(quad, vec4<T>(finish(combine(total, a)), finish(combine(total, b)), finish(combine(total, c)),
            finish(combine(total, local))));
      }
    }
    total = combine(total, local);
  }
  if (VARIANT == PARTS) {
    store_part(task, total.x);
    store_tag(task, total.y);
  }
}
