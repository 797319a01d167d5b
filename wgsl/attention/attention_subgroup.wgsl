// How lanes exchange where a workgroup is exactly a subgroup of eight: each lane holds all rows of the block in
// registers, of every eighth column.
const WORKGROUP = 8u;
const ROWS = BLOCK;
const LOADS = (BLOCK + 7u) / 8u;

fn row_in_block(local: u32, r: u32) -> u32 { return r; }

// Each lane loads its own rows, eight apart; share_row gives all of them one lane's.
fn loaded_row(local: u32, n: u32) -> u32 { return min(local + 8u * n, BLOCK - 1u); }
fn share_row(loaded: array<vec4<f32>, LOADS>, r: u32) -> vec4<f32> {
  return subgroupShuffle(loaded[r / 8u], r % 8u);
}

fn row_max(x: f32, local: u32) -> f32 {
  var y = max(x, subgroupShuffleXor(x, 1u));
  y = max(y, subgroupShuffleXor(y, 2u));
  return max(y, subgroupShuffleXor(y, 4u));
}
fn row_sum(x: f32, local: u32) -> f32 {
  var y = x + subgroupShuffleXor(x, 1u);
  y += subgroupShuffleXor(y, 2u);
  return y + subgroupShuffleXor(y, 4u);
}

// Each lane reads the results that it wrote itself; a kernel without barriers runs faster on software adapters.
fn settle() {}

fn publish(tile: ptr<function, Tile>, local: u32) {}
// Component `part` of lane `lane` in row r of the tile.
fn published(tile: ptr<function, Tile>, r: u32, part: u32, lane: u32, local: u32) -> f32 {
  return subgroupShuffle((*tile)[r][part], lane);
}
