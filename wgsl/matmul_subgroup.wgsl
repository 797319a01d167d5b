// A tile of 8 * LINES rows and 32 columns per workgroup, which is exactly a subgroup of 8 lanes. A lane holds LINES rows
// of a, four steps at a time, and hands them to the others by broadcast; it owns four columns of b and of the result.
alias Eight = array<vec4<f32>, 8>;

const COLUMNS = 4u * WORKGROUP;

// b has four steps, one per column of the matrix: an accumulator takes its four products back to back.
fn feed(acc: vec4<f32>, a: vec4<f32>, b: mat4x4<f32>) -> vec4<f32> {
  return fma(vec4<f32>(a.w), b[3], fma(vec4<f32>(a.z), b[2], fma(vec4<f32>(a.y), b[1], fma(vec4<f32>(a.x), b[0], acc))));
}

fn feed_eight(acc: ptr<function, Eight>, a: vec4<f32>, b: mat4x4<f32>) {
  (*acc)[0] = feed((*acc)[0], subgroupBroadcast(a, 0u), b);
  (*acc)[1] = feed((*acc)[1], subgroupBroadcast(a, 1u), b);
  (*acc)[2] = feed((*acc)[2], subgroupBroadcast(a, 2u), b);
  (*acc)[3] = feed((*acc)[3], subgroupBroadcast(a, 3u), b);
  (*acc)[4] = feed((*acc)[4], subgroupBroadcast(a, 4u), b);
  (*acc)[5] = feed((*acc)[5], subgroupBroadcast(a, 5u), b);
  (*acc)[6] = feed((*acc)[6], subgroupBroadcast(a, 6u), b);
  (*acc)[7] = feed((*acc)[7], subgroupBroadcast(a, 7u), b);
}

fn store_row(batch: u32, row: u32, column: u32, product: vec4<f32>) {
  if (row < rows()) { store_four(batch, row, column, product); }
}

fn store_eight(acc: ptr<function, Eight>, batch: u32, row: u32, column: u32) {
  store_row(batch, row, column, (*acc)[0]);
  store_row(batch, row + LINES, column, (*acc)[1]);
  store_row(batch, row + 2u * LINES, column, (*acc)[2]);
  store_row(batch, row + 3u * LINES, column, (*acc)[3]);
  store_row(batch, row + 4u * LINES, column, (*acc)[4]);
  store_row(batch, row + 5u * LINES, column, (*acc)[5]);
  store_row(batch, row + 6u * LINES, column, (*acc)[6]);
  store_row(batch, row + 7u * LINES, column, (*acc)[7]);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  let column_tiles = (columns() + COLUMNS - 1u) / COLUMNS;
  let row_tiles = (rows() + 8u * LINES - 1u) / (8u * LINES);
  let steps = (depth() + 3u) / 4u;
  for (var tile = group.x; tile < column_tiles * row_tiles * batches(); tile += groups.x) {
    let column = (tile % column_tiles) * COLUMNS + 4u * lane;
    let row = (tile / column_tiles % row_tiles) * 8u * LINES;
    let batch = tile / column_tiles / row_tiles;
    let lines_of_a = lines_a(batch, row + LINES * lane);
    let lines_of_b = lines_b(batch, column);
    var acc0 = Eight();
    var acc1 = Eight();
    var acc2 = Eight();
    var acc3 = Eight();
    for (var k = 0u; k < steps; k++) {
      let a = load_a(lines_of_a, k);
      let b = transpose(load_b(lines_of_b, k));
      feed_eight(&acc0, a[0], b);
      if (LINES > 1u) { feed_eight(&acc1, a[1], b); }
      if (LINES > 2u) {
        feed_eight(&acc2, a[2], b);
        feed_eight(&acc3, a[3], b);
      }
    }
    store_eight(&acc0, batch, row, column);
    if (LINES > 1u) { store_eight(&acc1, batch, row + 1u, column); }
    if (LINES > 2u) {
      store_eight(&acc2, batch, row + 2u, column);
      store_eight(&acc3, batch, row + 3u, column);
    }
  }
}
