// A tile of 8 * LINES rows and 32 columns per workgroup, which is exactly a subgroup of 8 lanes. A lane holds LINES rows
// of a, four steps at a time, and hands them to the others by broadcast; it owns four columns of b and of the result.
alias Eight = array<vec4<f32>, 8>;

const ROWS = 8u * LINES;
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

// Rows lie LINES apart in an accumulator.
fn keep_eight(results: ptr<function, array<vec4<f32>, ROWS>>, acc: Eight, first: u32) {
  (*results)[first] = acc[0];
  (*results)[first + LINES] = acc[1];
  (*results)[first + 2u * LINES] = acc[2];
  (*results)[first + 3u * LINES] = acc[3];
  (*results)[first + 4u * LINES] = acc[4];
  (*results)[first + 5u * LINES] = acc[5];
  (*results)[first + 6u * LINES] = acc[6];
  (*results)[first + 7u * LINES] = acc[7];
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  take_params();
  let column_tiles = (columns() + COLUMNS - 1u) / COLUMNS;
  let row_tiles = (rows() + ROWS - 1u) / ROWS;
  let steps = (depth() + 3u) / 4u;
  for (var tile = group.x; tile < column_tiles * row_tiles * batches(); tile += groups.x) {
    let column = (tile % column_tiles) * COLUMNS + 4u * lane;
    let row = (tile / column_tiles % row_tiles) * ROWS;
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
    // Accumulators are registers only as long as no loop indexes them; what is done with a result is compiled once.
    var results: array<vec4<f32>, ROWS>;
    keep_eight(&results, acc0, 0u);
    if (LINES > 1u) { keep_eight(&results, acc1, 1u); }
    if (LINES > 2u) {
      keep_eight(&results, acc2, 2u);
      keep_eight(&results, acc3, 3u);
    }
    for (var i = 0u; i < min(ROWS, rows() - row); i++) { store_four(batch, row + i, column, results[i]); }
  }
}
