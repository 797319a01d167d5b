// What the kernels of attention share: how queries are numbered, what they see, exponentials and dropout.
const TILE = 32u;  // keys, or queries, that are taken at a time

// The query heads that share a key head, and their queries, are rows of one matrix.
struct Query { head: u32, index: u32, }
fn query_at(kv_head: u32, row: u32) -> Query {
  let inside = min(row, group() * queries() - 1u);
  return Query(kv_head * group() + inside / queries(), inside % queries());
}
// A query's place among all: of its log-sum-exp and its random numbers.
fn query_number(batch: u32, head: u32, index: u32) -> u32 {
  return (batch * kv_heads() * group() + head) * queries() + index;
}
fn keys_seen(index: u32) -> u32 { return select(keys(), min(index + 1u, keys()), causal()); }

// The mask of one query and four keys, or of four queries and one key.
fn load_mask(at: u32, keys: vec4<u32>) -> vec4<f32> {
  let p = at + keys * mask_stride();
  return vec4<f32>(mask_at(p.x), mask_at(p.y), mask_at(p.z), mask_at(p.w));
}
fn load_mask_column(at: vec4<u32>, key: u32) -> vec4<f32> {
  let p = at + key * mask_stride();
  return vec4<f32>(mask_at(p.x), mask_at(p.y), mask_at(p.z), mask_at(p.w));
}

// exp of x up to about 0, or NaN, as 2^k * exp(r); what would be denormal is 0. Adding 1.5 * 2^23 rounds to an integer,
// which stands in the low bits.
fn exp_below(x: vec4<f32>) -> vec4<f32> {
  let bits = bitcast<vec4<u32>>(fma(x, vec4<f32>(1.44269504), vec4<f32>(12582912.0)));
  let k = bitcast<vec4<i32>>(bits - 0x4b400000u);
  let r = fma(vec4<f32>(k), vec4<f32>(-0.693147181), x);
  var p = fma(r, vec4<f32>(0.00829031), vec4<f32>(0.04189794));
  p = fma(r, p, vec4<f32>(0.16667636));
  p = fma(r, p, vec4<f32>(0.49999149));
  p = fma(r, p, vec4<f32>(0.99999971));
  p = fma(r, p, vec4<f32>(1.0));
  let y = p * bitcast<vec4<f32>>((bits << vec4<u32>(23u)) + 0x3f800000u);
  return select(y, vec4<f32>(), x < vec4<f32>(-87.3));
}

// A row that sees nothing has the log-sum-exp -inf; its probabilities are zero.
fn divisor_of(log_sum: f32) -> f32 { return select(log_sum, -log_sum, bitcast<u32>(log_sum) == 0xff800000u); }
