// Outputs side by side, of which a workgroup takes SIDE items. Its lines of lanes share the rows of one part among them,
// and the parts of an output lie as far apart as there are outputs.
const SIDE = 64u;
const LINES = WORKGROUP / SIDE;
var<workgroup> joined: array<array<Item, SIDE>, LINES>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let column = lane % SIDE;
  let line = lane / SIDE;
  let first = group.y * span();
  let last = min(first + span(), reduced());
  let end = min((group.x + 1u) * chunk(), (outputs() + SIDE - 1u) / SIDE);
  for (var tile = group.x * chunk(); tile < end; tile++) {
    let m = tile * SIDE + column;
    joined[line][column] = fold_items(kept_offset(min(m, outputs() - 1u)), first + line, last, LINES);
    workgroupBarrier();
    if (line == 0u && m < outputs()) {
      var p = joined[0][column];
      for (var other = 1u; other < LINES; other++) { p = combine_items(p, joined[other][column]); }
      store_item(group.y * outputs() + m, p);
    }
    workgroupBarrier();
  }
}
