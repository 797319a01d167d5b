// The gradient of a block of queries, by a walk over the keys, and the sum of grad * out that both backwards take off.
fn run(task: u32, local: u32) {
  let first = task % blocks() * BLOCK;
  let kv_head = task / blocks() % kv_heads();
  let batch = task / blocks() / kv_heads();
  let end = keys_seen_by_block(first);

  var query = Places();
  var grad = Places();
  for (var n = 0u; n < LOADS; n++) {
    let q = query_at(kv_head, first + loaded_row(local, n));
    query[n] = place(QUERY, batch, q.head, q.index);
    grad[n] = place(GRAD, batch, q.head, q.index);
  }
  var delta = Numbers();
  var divisor = Numbers();
  var limit = Indices();
  var number = Indices();
  var mask = Indices();
  for (var r = 0u; r < ROWS; r++) {
    let row = first + row_in_block(local, r);
    let q = query_at(kv_head, row);
    limit[r] = keys_seen(q.index);
    number[r] = query_number(batch, q.head, q.index);
    divisor[r] = divisor_of(load_log_sum(number[r]));
    if (MASK) { mask[r] = place(MASKS, batch, q.head, q.index); }
    let g = place(GRAD, batch, q.head, q.index);
    let out = place(OUT, batch, q.head, q.index);
    var sum = 0.0;
    for (var i = local % 8u; i < value_quads(); i += 8u) { sum += dot(load(GRAD, g, i), load(OUT, out, i)); }
    delta[r] = row_sum(sum, local);
    if (row < group() * queries() && local % 8u == 0u) { store_delta(number[r], delta[r]); }
  }

  let key = place(KEY, batch, kv_head, 0u);
  let value = place(VALUE, batch, kv_head, 0u);
  var sums = Sums();
  for (var column = 0u; column < end; column += TILE) {
    let columns = columns_of(column, local);
    let inside = min(columns, vec4<u32>(keys() - 1u));
    var tile = Tile();
    product(&tile, QUERY, query, KEY, key + inside * row_stride(KEY), head_quads());
    var slope = Tile();
    product(&slope, GRAD, grad, VALUE, value + inside * row_stride(VALUE), value_quads());
    for (var r = 0u; r < ROWS; r++) {
      var x = tile[r] * scale();
      if (MASK) { x += load_mask(mask[r], inside); }
      x = select(vec4<f32>(), exp_below(x - divisor[r]), columns < vec4<u32>(limit[r]));
      tile[r] = x * (kept(slope[r] * keep_scale(), number[r], columns) - delta[r]);
    }
    accumulate(&sums, &tile, KEY, key + column * row_stride(KEY), keys() - column, local);
  }

  for (var r = 0u; r < ROWS; r++) { delta[r] = scale(); }
  set_results(&sums, delta, local);
  for (var r = local / 8u; r < min(BLOCK, group() * queries() - first); r += WORKGROUP / 8u) {
    let q = query_at(kv_head, first + r);
    let at = place(FIRST, batch, q.head, q.index);
    for (var i = local % 8u; i < head_quads(); i += 8u) { store_first(at, i, results[r][i]); }
  }
}
