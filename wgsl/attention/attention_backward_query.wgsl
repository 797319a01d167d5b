// The gradient of a block of queries, by a walk over the keys, and the sum of grad * out that both backwards take off.
fn run(task: u32, local: u32) {
  let first = task % blocks() * BLOCK;
  let strip = task / blocks() % strips();
  let batch = task / blocks() / strips();
  if (FLEX && first >= rows_of(strip)) { return; }
  let kv_head = kv_head_of(strip);
  let walk = walk_keys(batch, strip, first, 0u);

  var query = Places();
  var grad = Places();
  for (var n = 0u; n < LOADS; n++) {
    let q = query_at(strip, first + loaded_row(local, n));
    query[n] = place(QUERY, batch, q.head, q.index);
    grad[n] = place(GRAD, batch, q.head, q.index);
  }
  var delta = Numbers();
  var divisor = Numbers();
  var limit = Indices();
  var number = Indices();
  var mask = Indices();
  var whose = Queries();
  for (var r = 0u; r < ROWS; r++) {
    let row = first + row_in_block(local, r);
    let q = query_at(strip, row);
    limit[r] = last_key(walk, q.index);
    if (FLEX) { whose[r] = q; }
    number[r] = query_number(batch, q.head, q.index);
    divisor[r] = divisor_of(load_log_sum(number[r]) * log_unit());
    if (MASK) { mask[r] = place(MASKS, batch, q.head, q.index); }
    let g = place(GRAD, batch, q.head, q.index);
    let out = place(OUT, batch, q.head, q.index);
    var sum = 0.0;
    for (var i = local % 8u; i < value_quads(); i += 8u) { sum += dot(load(GRAD, g, i), load(OUT, out, i)); }
    delta[r] = row_sum(sum, local);
    if (LOG_SUM_GRAD) { delta[r] -= load_part_log_sum(number[r]) / log_unit(); }
    if (row < rows_of(strip) && local % 8u == 0u) { store_delta(number[r], delta[r]); }
  }

  let key = place(KEY, batch, kv_head, 0u);
  let value = place(VALUE, batch, kv_head, 0u);
  var sums = Sums();
  for (var step = walk.begin; step < walk.end; step++) {
    let span = keys_at(walk, step);
    if (FLEX && span.first >= span.end) { continue; }
    let column = span.first;
    let columns = columns_of(column, local);
    let inside = min(columns, vec4<u32>(keys() - 1u));
    var tile = Tile();
    product(&tile, QUERY, query, KEY, key + inside * row_stride(KEY), head_quads());
    var slope = Tile();
    product(&slope, GRAD, grad, VALUE, value + inside * row_stride(VALUE), value_quads());
    for (var r = 0u; r < ROWS; r++) {
      var x = tile[r] * scale();
      if (FLEX) {
        let score = x;
        x = exp_below(flex_scores(score, batch, whose[r], columns, span) - divisor[r]);
        tile[r] = flex_slopes(score, batch, whose[r], columns, x * (slope[r] - delta[r]));
      } else {
        if (MASK) { x += load_mask(mask[r], inside); }
        x = select(vec4<f32>(), exp_below(x - divisor[r]), columns < vec4<u32>(limit[r]));
        tile[r] = x * (kept(slope[r] * keep_scale(), number[r], columns) - delta[r]);
      }
    }
    accumulate(&sums, &tile, KEY, key + column * row_stride(KEY), span.end - column, local);
  }

  for (var r = 0u; r < ROWS; r++) { delta[r] = scale(); }
  set_results(&sums, delta, local);
  for (var r = local / 8u; r < min(BLOCK, rows_of(strip) - first); r += WORKGROUP / 8u) {
    let q = query_at(strip, first + r);
    let at = place(FIRST, batch, q.head, q.index);
    for (var i = local % 8u; i < head_quads(); i += 8u) { store_first(at, i, results[r][i]); }
  }
}
