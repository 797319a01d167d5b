// Joins what attention_forward gave for parts of the keys, each with its own log-sum-exp. An invocation per quad.
fn run(task: u32) {
  let quad = task % value_quads();
  let number = task / value_quads();
  let index = number % queries();
  let head = number / queries() % (kv_heads() * group());
  let batch = number / queries() / (kv_heads() * group());
  var most = -3.4028234e38;
  for (var part = 0u; part < parts(); part++) { most = max(most, load_part_log_sum(number * parts() + part)); }
  var total = 0.0;
  var sums = vec4<f32>();
  let at = place(VALUE, batch, head, index);
  for (var part = 0u; part < parts(); part++) {
    let weight = exp_below(vec4<f32>(load_part_log_sum(number * parts() + part) - most)).x;
    total += weight;
    sums = fma(vec4<f32>(weight), load(VALUE, at + part * part_stride(), quad), sums);
  }
  let factor = select(1.0 / total, 0.0, total == 0.0);
  store_out(place(OUT, batch, head, index), quad, sums * factor);
  if (quad == 0u) {
    store_log_sum(number, select(most + log_f32(total), -inf_f32(), total == 0.0) * log_unit());
  }
}
