// The gradients of a block of keys and values, by a walk over the queries of all heads that share them.
fn run(task: u32, local: u32) {
  let strip = task / blocks() % key_strips();
  let batch = task / blocks() / key_strips();
  let kv_head = kv_head_of_keys(strip);
  let first = first_key(strip) + task % blocks() * BLOCK;
  let end = end_of_keys(strip);
  if (FLEX && first >= end) { return; }

  var key = Places();
  var value = Places();
  for (var n = 0u; n < LOADS; n++) {
    let row = min(first + loaded_row(local, n), keys() - 1u);
    key[n] = place(KEY, batch, kv_head, row);
    value[n] = place(VALUE, batch, kv_head, row);
  }
  var key_sums = Sums();
  var value_sums = Sums();
  for (var head = kv_head * group(); head < (kv_head + 1u) * group(); head++) {
    let query = place(QUERY, batch, head, 0u);
    let grad = place(GRAD, batch, head, 0u);
    let walk = walk_queries(batch, head, strip, first);
    for (var step = walk.begin; step < walk.end; step++) {
      let span = queries_at(walk, step);
      if (FLEX && span.first >= span.end) { continue; }
      let column = span.first;
      let columns = columns_of(column, local);
      let inside = min(columns, vec4<u32>(queries() - 1u));
      let numbers = query_number(batch, head, 0u) + inside;
      let log_sum = log_unit() * vec4<f32>(load_log_sum(numbers.x), load_log_sum(numbers.y), load_log_sum(numbers.z),
          load_log_sum(numbers.w));
      let divisor = vec4<f32>(divisor_of(log_sum.x), divisor_of(log_sum.y), divisor_of(log_sum.z),
          divisor_of(log_sum.w));
      let delta = vec4<f32>(load_delta(numbers.x), load_delta(numbers.y), load_delta(numbers.z),
          load_delta(numbers.w));
      var tile = Tile();
      product(&tile, KEY, key, QUERY, query + inside * row_stride(QUERY), head_quads());
      var slope = Tile();
      product(&slope, VALUE, value, GRAD, grad + inside * row_stride(GRAD), value_quads());
      for (var r = 0u; r < ROWS; r++) {
        let row = first + row_in_block(local, r);
        let row_inside = min(row, keys() - 1u);
        var x = tile[r] * scale();
        if (FLEX) {
          let score = x;
          x = exp_below(flex_scores_column(score, batch, head, columns, row_inside, span) - divisor);
          tile[r] = x;
          slope[r] = flex_slopes_column(score, batch, head, columns, row_inside, x * (slope[r] - delta));
          continue;
        }
        if (MASK) {
          x += load_mask_column(vec4<u32>(place(MASKS, batch, head, inside.x), place(MASKS, batch, head, inside.y),
              place(MASKS, batch, head, inside.z), place(MASKS, batch, head, inside.w)), row_inside);
        }
        let seen = (columns < vec4<u32>(queries())) & (vec4<bool>(!causal()) | (vec4<u32>(row) <= columns));
        x = select(vec4<f32>(), exp_below(x - divisor), seen);
        let stay = kept_column(vec4<f32>(keep_scale()), numbers, row_inside);
        tile[r] = x * stay;
        slope[r] = x * (slope[r] * stay - delta);
      }
      accumulate(&value_sums, &tile, GRAD, grad + column * row_stride(GRAD), span.end - column, local);
      accumulate(&key_sums, &slope, QUERY, query + column * row_stride(QUERY), span.end - column, local);
    }
  }

  var factors = Numbers();
  for (var r = 0u; r < ROWS; r++) { factors[r] = scale(); }
  set_results(&key_sums, factors, local);
  for (var r = local / 8u; r < min(BLOCK, end - first); r += WORKGROUP / 8u) {
    let at = place(FIRST, batch, kv_head, first + r);
    for (var i = local % 8u; i < head_quads(); i += 8u) { store_first(at, i, results[r][i]); }
  }
  for (var r = 0u; r < ROWS; r++) { factors[r] = 1.0; }
  set_results(&value_sums, factors, local);
  for (var r = local / 8u; r < min(BLOCK, end - first); r += WORKGROUP / 8u) {
    let at = place(SECOND, batch, kv_head, first + r);
    for (var i = local % 8u; i < value_quads(); i += 8u) { store_second(at, i, results[r][i]); }
  }
}
