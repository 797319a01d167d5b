// One 4 x 4 tile of a product per invocation, operands through their strides. Loads are clamped, stores guarded.
const TILE = 4u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let row_tiles = (rows() + TILE - 1u) / TILE;
  let column_tiles = (columns() + TILE - 1u) / TILE;
  let begin = group.x * chunk();
  let end = min(begin + chunk(), row_tiles * column_tiles * batches());
  for (var task = begin + lane; task < end; task += WORKGROUP) {
    let column = (task % column_tiles) * TILE;
    let row = (task / column_tiles % row_tiles) * TILE;
    let batch = task / column_tiles / row_tiles;
    var acc = array<array<T, 4>, 4>();
    for (var k = 0u; k < depth(); k++) {
      var b: array<T, 4>;
      for (var j = 0u; j < TILE; j++) { b[j] = load_b(batch, min(column + j, columns() - 1u), k); }
      for (var i = 0u; i < TILE; i++) {
        let a = load_a(batch, min(row + i, rows() - 1u), k);
        for (var j = 0u; j < TILE; j++) { acc[i][j] = mul_add(a, b[j], acc[i][j]); }
      }
    }
    for (var i = 0u; i < min(TILE, rows() - row); i++) {
      for (var j = 0u; j < min(TILE, columns() - column); j++) { store(batch, row + i, column + j, acc[i][j]); }
    }
  }
}
