// A tile of 32 x 32 per workgroup: slices of both operands in shared memory, 4 x 4 elements per lane in registers.
const TILE = 32u;
const SLICE = 16u;

var<workgroup> slice_a: array<array<T, TILE>, SLICE>;
var<workgroup> slice_b: array<array<T, TILE>, SLICE>;

// The place in a slice of its i-th element: neighbours in memory are loaded by neighbours among the lanes.
fn place_in_slice(i: u32, step: u32) -> vec2<u32> {
  if (step == 1u) { return vec2<u32>(i % SLICE, i / SLICE); }
  return vec2<u32>(i / TILE, i % TILE);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
  take_params();
  let column_tiles = (columns() + TILE - 1u) / TILE;
  let row_tiles = (rows() + TILE - 1u) / TILE;
  for (var tile = group.x; tile < column_tiles * row_tiles * batches(); tile += groups.x) {
    let first_column = (tile % column_tiles) * TILE;
    let first_row = (tile / column_tiles % row_tiles) * TILE;
    let batch = tile / column_tiles / row_tiles;
    var acc = array<array<T, 4>, 4>();
    for (var k = 0u; k < depth(); k += SLICE) {
      for (var i = lane; i < TILE * SLICE; i += WORKGROUP) {
        let at = place_in_slice(i, step_a());
        var a = T();
        if (k + at.x < depth()) { a = load_a(batch, min(first_row + at.y, rows() - 1u), k + at.x); }
        slice_a[at.x][at.y] = a;
      }
      for (var i = lane; i < TILE * SLICE; i += WORKGROUP) {
        let at = place_in_slice(i, step_b());
        var b = T();
        if (k + at.x < depth()) { b = load_b(batch, min(first_column + at.y, columns() - 1u), k + at.x); }
        slice_b[at.x][at.y] = b;
      }
      workgroupBarrier();
      for (var step = 0u; step < SLICE; step++) {
        var b = array<T, 4>();
        for (var j = 0u; j < 4u; j++) { b[j] = slice_b[step][lane % 8u + 8u * j]; }
        for (var i = 0u; i < 4u; i++) {
          let a = slice_a[step][lane / 8u + 8u * i];
          for (var j = 0u; j < 4u; j++) { acc[i][j] = mul_add(a, b[j], acc[i][j]); }
        }
      }
      workgroupBarrier();
    }
    for (var i = 0u; i < 4u; i++) {
      for (var j = 0u; j < 4u; j++) {
        let row = first_row + lane / 8u + 8u * i;
        let column = first_column + lane % 8u + 8u * j;
        if (row < rows() && column < columns()) { store(batch, row, column, acc[i][j]); }
      }
    }
  }
}
