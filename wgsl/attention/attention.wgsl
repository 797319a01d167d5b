// Shared by the kernels of attention: the numbering of queries, visible keys and masks.
const TILE = 32u;  // keys, or queries, that are taken at a time

struct Query { head: u32, index: u32, }

// A query's place among all: of its log-sum-exp and its random numbers.
fn query_number(batch: u32, head: u32, index: u32) -> u32 {
  return (batch * kv_heads() * group() + head) * queries() + index;
}
fn keys_seen(index: u32) -> u32 { return select(keys(), min(index + 1u, keys()), causal()); }
// Of the rows of a tile, those of one of eight lanes.
fn columns_of(first: u32, local: u32) -> vec4<u32> { return first + local % 8u + vec4<u32>(0u, 8u, 16u, 24u); }

// The mask of one query and four keys, or of four queries and one key.
fn load_mask(at: u32, keys: vec4<u32>) -> vec4<f32> {
  let p = at + keys * mask_stride();
  return vec4<f32>(mask_at(p.x), mask_at(p.y), mask_at(p.z), mask_at(p.w));
}
fn load_mask_column(at: vec4<u32>, key: u32) -> vec4<f32> {
  let p = at + key * mask_stride();
  return vec4<f32>(mask_at(p.x), mask_at(p.y), mask_at(p.z), mask_at(p.w));
}

// A row that sees nothing has the log-sum-exp -inf; its probabilities are zero.
fn divisor_of(log_sum: f32) -> f32 { return select(log_sum, -log_sum, bitcast<u32>(log_sum) == 0xff800000u); }
