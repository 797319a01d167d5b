// A tile of 8 * LINES rows and 32 columns per workgroup, which is exactly a subgroup of 8 lanes. A lane holds LINES rows
// of a, four steps at a time, and hands them to the others by broadcast; it owns four columns of b and of the result.
const ROWS = 8u * LINES;
const COLUMNS = 4u * WORKGROUP;

// b has four steps, one per column of the matrix: an accumulator takes its four products back to back.
fn feed(acc: vec4<f32>, a: vec4<f32>, b: mat4x4<f32>) -> vec4<f32> {
  return fma(vec4<f32>(a.w), b[3], fma(vec4<f32>(a.z), b[2], fma(vec4<f32>(a.y), b[1], fma(vec4<f32>(a.x), b[0], acc))));
}

fn feed_eight(acc: ptr<function, array<vec4<f32>, ROWS>>, first: u32, a: vec4<f32>, b: mat4x4<f32>) {
  (*acc)[first] = feed((*acc)[first], subgroupBroadcast(a, 0u), b);
  (*acc)[first + LINES] = feed((*acc)[first + LINES], subgroupBroadcast(a, 1u), b);
  (*acc)[first + 2u * LINES] = feed((*acc)[first + 2u * LINES], subgroupBroadcast(a, 2u), b);
  (*acc)[first + 3u * LINES] = feed((*acc)[first + 3u * LINES], subgroupBroadcast(a, 3u), b);
  (*acc)[first + 4u * LINES] = feed((*acc)[first + 4u * LINES], subgroupBroadcast(a, 4u), b);
  (*acc)[first + 5u * LINES] = feed((*acc)[first + 5u * LINES], subgroupBroadcast(a, 5u), b);
  (*acc)[first + 6u * LINES] = feed((*acc)[first + 6u * LINES], subgroupBroadcast(a, 6u), b);
  (*acc)[first + 7u * LINES] = feed((*acc)[first + 7u * LINES], subgroupBroadcast(a, 7u), b);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  take_params();
  let column_tiles = (columns() + COLUMNS - 1u) / COLUMNS;
  let row_tiles = (rows() + ROWS - 1u) / ROWS;
  let steps = (depth() + 3u) / 4u;
  for (var tile = group.x; tile < column_tiles * row_tiles * batches(); tile += groups.x) {
    let line = tile / column_tiles;
    let batch = line / row_tiles;
    let column = (tile - line * column_tiles) * COLUMNS + 4u * lane;
    let row = (line - batch * row_tiles) * ROWS;
    let lines_of_a = lines_a(batch, row + LINES * lane);
    let lines_of_b = lines_b(batch, column);
    var acc: array<vec4<f32>, ROWS>;
    for (var i = 0u; i < ROWS; i++) { acc[i] = vec4<f32>(); }
    for (var k = 0u; k < steps; k++) {
      let a = load_a(lines_of_a, k);
      let b = transpose(load_b(lines_of_b, k));
      feed_eight(&acc, 0u, a[0], b);
      if (LINES > 1u) { feed_eight(&acc, 1u, a[1], b); }
      if (LINES > 2u) {
        feed_eight(&acc, 2u, a[2], b);
        feed_eight(&acc, 3u, a[3], b);
      }
    }
    var c = four_of_c(batch, row, column);
    for (var i = 0u; i < min(ROWS, rows() - row); i++) {
      if (!SAME_C) { c = four_of_c(batch, row + i, column); }
      store_four(batch, row + i, column, acc[i], c);
    }
  }
}
