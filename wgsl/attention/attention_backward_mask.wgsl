// The gradient of a mask: an invocation per element of the mask sums over whatever it is broadcast over.
struct Span { begin: u32, end: u32, }
fn span_of(size: u32, index: u32, whole: u32) -> Span {
  if (size == 1u) { return Span(0u, whole); }
  return Span(index, index + 1u);
}

fn slope_at(batch: u32, head: u32, query: u32, key: u32) -> f32 {
  let kv_head = head / group();
  let q = place(QUERY, batch, head, query);
  let k = place(KEY, batch, kv_head, key);
  let g = place(GRAD, batch, head, query);
  let v = place(VALUE, batch, kv_head, key);
  var score = 0.0;
  for (var i = 0u; i < head_quads(); i++) { score += dot(load(QUERY, q, i), load(KEY, k, i)); }
  var slope = 0.0;
  for (var i = 0u; i < value_quads(); i++) { slope += dot(load(GRAD, g, i), load(VALUE, v, i)); }
  let number = query_number(batch, head, query);
  let x = score * scale() + load_mask(place(MASKS, batch, head, query), vec4<u32>(key)).x;
  slope = kept_column(vec4<f32>(slope * keep_scale()), vec4<u32>(number), key).x;
  return exp_below(vec4<f32>(x - divisor_of(load_log_sum(number)))).x * (slope - load_delta(number));
}

fn run(task: u32) {
  let sizes = mask_sizes();
  let key = span_of(sizes.w, task % sizes.w, keys());
  let query = span_of(sizes.z, task / sizes.w % sizes.z, queries());
  let head = span_of(sizes.y, task / sizes.w / sizes.z % sizes.y, kv_heads() * group());
  let batch = span_of(sizes.x, task / sizes.w / sizes.z / sizes.y, batches());
  var sum = 0.0;
  for (var b = batch.begin; b < batch.end; b++) {
    for (var h = head.begin; h < head.end; h++) {
      for (var q = query.begin; q < query.end; q++) {
        for (var k = key.begin; k < min(key.end, keys_seen(q)); k++) { sum += slope_at(b, h, q, k); }
      }
    }
  }
  store_mask_grad(task, sum);
}
