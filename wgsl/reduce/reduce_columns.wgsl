// Four times four neighbouring outputs per invocation; a workgroup takes a tile of outputs side by side.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), (outputs() + WORKGROUP * COLUMNS - 1u) / (WORKGROUP * COLUMNS));
  for (var tile = begin; tile < end; tile++) {
    let m = tile * WORKGROUP * COLUMNS + lane;
    let last = outputs() - 1u;
    let at0 = kept_offset(min(m, last));
    let at1 = kept_offset(min(m + WORKGROUP, last));
    let at2 = kept_offset(min(m + 2u * WORKGROUP, last));
    let at3 = kept_offset(min(m + 3u * WORKGROUP, last));
    var total0 = no_quad();
    var total1 = no_quad();
    var total2 = no_quad();
    var total3 = no_quad();
    for (var first = 0u; first < reduced(); first += BLOCK) {
      var block0 = no_quad();
      var block1 = no_quad();
      var block2 = no_quad();
      var block3 = no_quad();
      let stop = min(first + BLOCK, reduced());
      for (var r = first; r < stop; r++) {
        block0 = combine_quads(block0, quad(at0, r));
        block1 = combine_quads(block1, quad(at1, r));
        block2 = combine_quads(block2, quad(at2, r));
        block3 = combine_quads(block3, quad(at3, r));
      }
      total0 = combine_quads(total0, block0);
      total1 = combine_quads(total1, block1);
      total2 = combine_quads(total2, block2);
      total3 = combine_quads(total3, block3);
    }
    if (m <= last) { store_quad(m, total0); }
    if (m + WORKGROUP <= last) { store_quad(m + WORKGROUP, total1); }
    if (m + 2u * WORKGROUP <= last) { store_quad(m + 2u * WORKGROUP, total2); }
    if (m + 3u * WORKGROUP <= last) { store_quad(m + 3u * WORKGROUP, total3); }
  }
}
