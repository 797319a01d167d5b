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
  if (VARIANT == CARRY && block + carried() > 0u) {
    let before = task + carried() - 1u;
    total = Acc(load_part(before), load_tag(before));
  }
  while (quad < end) {
    var local = identity();
    let stop = min(quad + BLOCK, end);
    for (; quad < stop; quad++) {
      let values = load_input(quad);
      let i = (quad - base) * 4u;
      var a = combine(local, map(values.x, i));
      var b = combine(a, map(values.y, i + 1u));
      var c = combine(b, map(values.z, i + 2u));
      local = combine(c, map(values.w, i + 3u));
      if (VARIANT != PARTS) {
        a = combine(total, a);
        b = combine(total, b);
        c = combine(total, c);
        let d = combine(total, local);
        store_output(quad, vec4<T>(finish(a), finish(b), finish(c), finish(d)));
        store_index(quad * 2u, vec4<u32>(a.y, 0u, b.y, 0u));
        store_index(quad * 2u + 1u, vec4<u32>(c.y, 0u, d.y, 0u));
      }
    }
    total = combine(total, local);
  }
  if (VARIANT == PARTS) {
    store_part(task, total.x);
    store_tag(task, total.y);
  }
}
