// softmax(q k^T * scale + mask) v in one walk over the keys, with the largest score and the sum so far. A task is a
// block of queries, and where there are few of those a part of the keys, which attention_combine joins.
fn run(task: u32, local: u32) {
  let part = task % parts();
  let first = task / parts() % blocks() * BLOCK;
  let strip = task / parts() / blocks() % strips();
  let batch = task / parts() / blocks() / strips();
  if (FLEX && first >= rows_of(strip)) { return; }
  let kv_head = kv_head_of(strip);
  let walk = walk_keys(batch, strip, first, part);

  var query = Places();
  for (var n = 0u; n < LOADS; n++) {
    let q = query_at(strip, first + loaded_row(local, n));
    query[n] = place(QUERY, batch, q.head, q.index);
  }
  let key = place(KEY, batch, kv_head, 0u);
  let value = place(VALUE, batch, kv_head, 0u);
  var own = Sums();
  var sums = Sums();
  var most = Numbers();
  var total = Numbers();
  var limit = Indices();
  var number = Indices();
  var mask = Indices();
  var whose = Queries();
  for (var r = 0u; r < ROWS; r++) {
    let q = query_at(strip, first + row_in_block(local, r));
    limit[r] = last_key(walk, q.index);
    if (FLEX) { whose[r] = q; }
    number[r] = query_number(batch, q.head, q.index);
    if (MASK) { mask[r] = place(MASKS, batch, q.head, q.index); }
    if (FEW) {
      for (var i = 0u; i < COLUMNS; i++) {
        let quad = quad_of(i, local);
        own[r][i] = select(vec4<f32>(), load(QUERY, place(QUERY, batch, q.head, q.index), quad), quad < head_quads());
      }
    }
    most[r] = -3.4028234e38;  // finite: from -inf, a row that begins with -inf would come to NaN
  }

  for (var step = walk.begin; step < walk.end; step++) {
    let span = keys_at(walk, step);
    if (FLEX && span.first >= span.end) { continue; }
    let column = span.first;
    let columns = columns_of(column, local);
    let inside = min(columns, vec4<u32>(keys() - 1u));
    var tile = Tile();
    if (FEW) {
      product_each(&tile, &own, KEY, key, column, min(column + TILE, span.end), head_quads(), local);
    } else {
      product(&tile, QUERY, query, KEY, key + inside * row_stride(KEY), head_quads());
    }
    for (var r = 0u; r < ROWS; r++) {
      var x = tile[r] * scale();
      if (FLEX) {
        x = flex_scores(x, batch, whose[r], columns, span);
      } else {
        if (MASK) { x += load_mask(mask[r], inside); }
        x = select(vec4<f32>(-inf_f32()), x, columns < vec4<u32>(limit[r]));
      }
      let largest = row_max(max(most[r], max(max(x.x, x.y), max(x.z, x.w))), local);
      let fade = exp_below(vec4<f32>(most[r] - largest)).x;
      most[r] = largest;
      x = exp_below(x - largest);
      total[r] = fma(total[r], fade, (x.x + x.y) + (x.z + x.w));
      tile[r] = kept(x, number[r], columns);
      for (var i = 0u; i < COLUMNS; i++) { sums[r][i] *= fade; }
    }
    accumulate(&sums, &tile, VALUE, value + column * row_stride(VALUE), span.end - column, local);
  }

  // Each of the eight lanes of a row takes the logarithms of some rows.
  var own_most = array<f32, LOADS>();
  var own_sum = array<f32, LOADS>();
  for (var r = 0u; r < ROWS; r++) {
    let sum = row_sum(total[r], local);
    own_most[r / 8u] = select(own_most[r / 8u], most[r], local % 8u == r % 8u);
    own_sum[r / 8u] = select(own_sum[r / 8u], sum, local % 8u == r % 8u);
    total[r] = select(keep_scale() / sum, 0.0, sum == 0.0);
  }
  for (var n = 0u; n < LOADS; n++) {
    let row = first + loaded_row(local, n);
    if (local % 8u + 8u * n < ROWS && row < rows_of(strip)) {
      let q = query_at(strip, row);
      let log_sum = select(own_most[n] + log_f32(own_sum[n]), -inf_f32(), own_sum[n] == 0.0);
      let at = query_number(batch, q.head, q.index) * parts() + part;
      store_log_sum(at, log_sum * log_unit());
      if (MOST) { store_most(at, select(own_most[n], -inf_f32(), own_sum[n] == 0.0) * log_unit()); }
    }
  }
  set_results(&sums, total, local);
  for (var r = local / 8u; r < min(BLOCK, rows_of(strip) - first); r += WORKGROUP / 8u) {
    let q = query_at(strip, first + r);
    let at = place(OUT, batch, q.head, q.index) + part * part_stride();
    for (var i = local % 8u; i < value_quads(); i += 8u) { store_out(at, i, results[r][i]); }
  }
}
