// How lanes exchange on any adapter: eight of a workgroup's 64 lanes share a row, through workgroup memory.
const WORKGROUP = 64u;
const ROWS = 1u;
const LOADS = 1u;

var<workgroup> exchanged: array<f32, WORKGROUP>;
var<workgroup> tiles: array<array<f32, TILE>, 8>;

fn row_in_block(local: u32, r: u32) -> u32 { return local / 8u; }

fn loaded_row(local: u32, n: u32) -> u32 { return local / 8u; }
fn share_row(loaded: array<vec4<f32>, LOADS>, r: u32) -> vec4<f32> { return loaded[0]; }

fn row_max(x: f32, local: u32) -> f32 {
  exchanged[local] = x;
  workgroupBarrier();
  var y = x;
  for (var i = 0u; i < 8u; i++) { y = max(y, exchanged[(local & ~7u) + i]); }
  workgroupBarrier();
  return y;
}
fn row_sum(x: f32, local: u32) -> f32 {
  exchanged[local] = x;
  workgroupBarrier();
  var y = 0.0;
  for (var i = 0u; i < 8u; i++) { y += exchanged[(local & ~7u) + i]; }
  workgroupBarrier();
  return y;
}

fn settle() { workgroupBarrier(); }

fn publish(tile: ptr<function, Tile>, local: u32) {
  workgroupBarrier();
  for (var part = 0u; part < 4u; part++) { tiles[local / 8u][part * 8u + local % 8u] = (*tile)[0][part]; }
  workgroupBarrier();
}
fn published(tile: ptr<function, Tile>, r: u32, part: u32, lane: u32, local: u32) -> f32 {
  return tiles[local / 8u][part * 8u + lane];
}
