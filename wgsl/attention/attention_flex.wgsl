// Rows, walks and scores of flex_attention. Behind this file come functions of the user's: flex_score, flex_visible and,
// for gradients, flex_slope; LISTS says how many lists of blocks there are, load_list reads them.
//
// A strip is a set of rows that one walk serves: of queries a block of the mask's, of one head or of all that share a key
// head and a list; of keys a block of the mask's, of one key head.
fn strips() -> u32 { return kv_heads() * group() / strip_heads() * query_blocks(); }
fn kv_head_of(strip: u32) -> u32 { return strip / query_blocks() * strip_heads() / group(); }
fn first_query(strip: u32) -> u32 { return strip % query_blocks() * query_block(); }
fn queries_of(strip: u32) -> u32 { return min(query_block(), queries() - first_query(strip)); }
fn rows_of(strip: u32) -> u32 { return strip_heads() * queries_of(strip); }
fn query_at(strip: u32, row: u32) -> Query {
  let count = queries_of(strip);
  let inside = min(row, strip_heads() * count - 1u);
  return Query(strip / query_blocks() * strip_heads() + inside / count, first_query(strip) + inside % count);
}
fn key_strips() -> u32 { return kv_heads() * key_blocks(); }
fn kv_head_of_keys(strip: u32) -> u32 { return strip / key_blocks(); }
fn first_key(strip: u32) -> u32 { return strip % key_blocks() * key_block(); }
fn end_of_keys(strip: u32) -> u32 { return min(first_key(strip) + key_block(), keys()); }

// A walk goes over the tiles of the blocks that a row of blocks lists, from `begin` to `end`: first the partial blocks,
// whose every element asks flex_visible, then the whole ones. A span is what a tile may hold of its block.
struct Walk { begin: u32, end: u32, partial_blocks: u32, partial_at: u32, whole_at: u32, }
struct Span { first: u32, end: u32, whole: bool, }

fn list_at(list: u32, batch: u32, head: u32, row: u32) -> u32 {
  let p = list_place(list);
  return p.x + batch * p.y + head * p.z + row * p.w;
}
fn tiles_of(block: u32) -> u32 { return (block + TILE - 1u) / TILE; }
fn walk_of(batch: u32, head: u32, row: u32, tiles: u32, part: u32, shares: u32) -> Walk {
  var walk = Walk(0u, 0u, 1u, 0u, 0u);
  var blocks = 1u;
  if (LISTS > 0u) {
    walk.partial_blocks = load_list(0u, list_at(0u, batch, head, row));
    walk.partial_at = list_at(1u, batch, head, row);
    blocks = walk.partial_blocks;
  }
  if (LISTS > 2u) {
    blocks += load_list(2u, list_at(2u, batch, head, row));
    walk.whole_at = list_at(3u, batch, head, row);
  }
  let share = (blocks * tiles + shares - 1u) / shares;
  walk.begin = min(part * share, blocks * tiles);
  walk.end = min(walk.begin + share, blocks * tiles);
  return walk;
}
fn span_at(walk: Walk, step: u32, block: u32, length: u32) -> Span {
  let tiles = tiles_of(block);
  var number = step / tiles;
  var whole = false;
  if (LISTS > 0u) {
    whole = number >= walk.partial_blocks;
    if (whole) {
      number = load_list(3u, walk.whole_at + number - walk.partial_blocks);
    } else {
      number = load_list(1u, walk.partial_at + number);
    }
  }
  return Span(number * block + step % tiles * TILE, min((number + 1u) * block, length), whole);
}
fn walk_keys(batch: u32, strip: u32, first: u32, part: u32) -> Walk {
  let head = strip / query_blocks() * strip_heads();
  return walk_of(batch, head, strip % query_blocks(), tiles_of(key_block()), part, parts());
}
fn walk_queries(batch: u32, head: u32, strip: u32, first: u32) -> Walk {
  return walk_of(batch, head, strip % key_blocks(), tiles_of(query_block()), 0u, 1u);
}
fn keys_at(walk: Walk, step: u32) -> Span { return span_at(walk, step, key_block(), keys()); }
fn queries_at(walk: Walk, step: u32) -> Span { return span_at(walk, step, query_block(), queries()); }
fn last_key(walk: Walk, query: u32) -> u32 { return 0u; }

// A score that is not to be seen is -inf.
fn one_score(x: f32, batch: u32, head: u32, query: u32, key: u32, inside: bool, whole: bool) -> f32 {
  let b = i32(batch);
  let h = i32(head);
  let m = i32(query);
  let n = i32(key);
  return select(-inf_f32(), flex_score(x, b, h, m, n), inside && (whole || flex_visible(b, h, m, n)));
}
fn flex_scores(x: vec4<f32>, batch: u32, query: Query, keys: vec4<u32>, span: Span) -> vec4<f32> {
  var y = vec4<f32>();
  for (var j = 0u; j < 4u; j++) {
    y[j] = one_score(x[j], batch, query.head, query.index, keys[j], keys[j] < span.end, span.whole);
  }
  return y;
}
fn flex_scores_column(x: vec4<f32>, batch: u32, head: u32, queries: vec4<u32>, key: u32, span: Span) -> vec4<f32> {
  var y = vec4<f32>();
  for (var j = 0u; j < 4u; j++) {
    y[j] = one_score(x[j], batch, head, queries[j], key, queries[j] < span.end, span.whole);
  }
  return y;
}

// The gradient of a score before flex_score, from that behind it; where that is zero nothing is to be seen.
fn one_slope(x: f32, batch: u32, head: u32, query: u32, key: u32, slope: f32) -> f32 {
  return select(flex_slope(x, i32(batch), i32(head), i32(query), i32(key), slope), 0.0, slope == 0.0);
}
fn flex_slopes(x: vec4<f32>, batch: u32, query: Query, keys: vec4<u32>, slope: vec4<f32>) -> vec4<f32> {
  var y = vec4<f32>();
  for (var j = 0u; j < 4u; j++) { y[j] = one_slope(x[j], batch, query.head, query.index, keys[j], slope[j]); }
  return y;
}
fn flex_slopes_column(x: vec4<f32>, batch: u32, head: u32, queries: vec4<u32>, key: u32, slope: vec4<f32>) -> vec4<f32> {
  var y = vec4<f32>();
  for (var j = 0u; j < 4u; j++) { y[j] = one_slope(x[j], batch, head, queries[j], key, slope[j]); }
  return y;
}
