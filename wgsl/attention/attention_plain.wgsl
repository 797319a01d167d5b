// Rows and walks of attention without functions of the user's. A strip is a set of rows that one walk serves: of queries
// those of one head, or of all heads that share a key head, as rows of one matrix; of keys those of a key head.
fn strips() -> u32 { return kv_heads() * group() / strip_heads(); }
fn kv_head_of(strip: u32) -> u32 { return strip * strip_heads() / group(); }
fn rows_of(strip: u32) -> u32 { return strip_heads() * queries(); }
fn query_at(strip: u32, row: u32) -> Query {
  let inside = min(row, strip_heads() * queries() - 1u);
  return Query(strip * strip_heads() + inside / queries(), inside % queries());
}
fn key_strips() -> u32 { return kv_heads(); }
fn kv_head_of_keys(strip: u32) -> u32 { return strip; }
fn first_key(strip: u32) -> u32 { return 0u; }
fn end_of_keys(strip: u32) -> u32 { return keys(); }

// A walk goes over tiles, from `begin` to `end`; a span is what one of them holds.
struct Walk { begin: u32, end: u32, last: u32, }
struct Span { first: u32, end: u32, whole: bool, }

// The most keys that a row of a block sees; the same for all lanes.
fn keys_seen_by_block(first: u32) -> u32 {
  let last = min(first + BLOCK, strip_heads() * queries()) - 1u;
  return keys_seen(select(last % queries(), queries() - 1u, first / queries() != last / queries()));
}
// And the keys that all of them see.
fn keys_seen_by_all(first: u32) -> u32 {
  let last = min(first + BLOCK, strip_heads() * queries()) - 1u;
  return keys_seen(select(first % queries(), 0u, first / queries() != last / queries()));
}
fn walk_keys(batch: u32, strip: u32, first: u32, part: u32) -> Walk {
  let begin = part * part_keys();
  let last = min(begin + part_keys(), keys_seen_by_block(first));
  return Walk(begin / TILE, (last + TILE - 1u) / TILE, last);
}
fn walk_queries(batch: u32, head: u32, strip: u32, first: u32) -> Walk {
  return Walk(select(0u, first / TILE, causal()), (queries() + TILE - 1u) / TILE, queries());
}
fn keys_at(walk: Walk, step: u32) -> Span { return Span(step * TILE, walk.last, true); }
fn queries_at(walk: Walk, step: u32) -> Span { return Span(step * TILE, walk.last, true); }
fn last_key(walk: Walk, query: u32) -> u32 { return min(keys_seen(query), walk.last); }

fn flex_scores(x: vec4<f32>, batch: u32, query: Query, keys: vec4<u32>, span: Span) -> vec4<f32> { return x; }
fn flex_scores_column(x: vec4<f32>, batch: u32, head: u32, queries: vec4<u32>, key: u32, span: Span) -> vec4<f32> {
  return x;
}
fn flex_slopes(x: vec4<f32>, batch: u32, query: Query, keys: vec4<u32>, slope: vec4<f32>) -> vec4<f32> { return slope; }
fn flex_slopes_column(x: vec4<f32>, batch: u32, head: u32, queries: vec4<u32>, key: u32, slope: vec4<f32>) -> vec4<f32> {
  return slope;
}
