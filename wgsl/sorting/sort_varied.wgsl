// The bits in which the keys of any two elements differ. A workgroup takes a block of the elements.
const TURNS = 16u;
var<workgroup> differing: array<vec2<u32>, WORKGROUP>;

fn run(task: u32, lane: u32) {
  let origin = ordered_key(load_input(0u));
  var bits = vec2<u32>(0u);
  for (var turn = 0u; turn < TURNS; turn++) {
    let place = min((task * TURNS + turn) * WORKGROUP + lane, total() - 1u);
    bits |= ordered_key(load_input(place)) ^ origin;
  }
  differing[lane] = bits;
  for (var step = WORKGROUP / 2u; step > 0u; step /= 2u) {
    workgroupBarrier();
    if (lane < step) { differing[lane] |= differing[lane + step]; }
  }
  if (lane == 0u) {
    or_varied(0u, differing[0].x);
    if (WORDS == 2u) { or_varied(1u, differing[0].y); }
  }
}
