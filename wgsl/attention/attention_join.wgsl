// Joins what the kernels for decoding gave for parts of the keys, each with its own log-sum-exp. A workgroup per query:
// SLOTS rows of lanes share the parts, so that many loads are under way.
var<workgroup> tops: array<f32, SLOTS>;
var<workgroup> totals: array<f32, SLOTS>;
var<workgroup> joined: array<array<vec4<f32>, QUADS>, SLOTS>;

fn run(number: u32, lane: u32) {
  let quad = lane % QUADS;
  let slot = lane / QUADS;
  let index = number % queries();
  let head = number / queries() % (kv_heads() * group());
  let batch = number / queries() / (kv_heads() * group());
  let at = place(VALUE, batch, head, index);
  let last = parts() - 1u;
  var most = -3.4028234e38;
  for (var part = slot; part < parts(); part += SLOTS) { most = max(most, load_part_log_sum(number * parts() + part)); }
  tops[slot] = most;
  workgroupBarrier();
  for (var i = 0u; i < SLOTS; i++) { most = max(most, tops[i]); }
  var total = 0.0;
  var sum = vec4<f32>();
  // Four parts at a time; those behind the end weigh nothing.
  for (var part = slot; part < parts(); part += 4u * SLOTS) {
    let places = part + vec4<u32>(0u, SLOTS, 2u * SLOTS, 3u * SLOTS);
    let inside = min(places, vec4<u32>(last));
    let numbers = number * parts() + inside;
    let start = at + inside * part_stride();
    let part0 = load_value(start.x, quad);
    let part1 = load_value(start.y, quad);
    let part2 = load_value(start.z, quad);
    let part3 = load_value(start.w, quad);
    let log_sums = vec4<f32>(load_part_log_sum(numbers.x), load_part_log_sum(numbers.y),
        load_part_log_sum(numbers.z), load_part_log_sum(numbers.w));
    let weights = select(vec4<f32>(), fading(log_sums - most), places == inside);
    total += sum_of(weights);
    sum += (weights.x * part0 + weights.y * part1) + (weights.z * part2 + weights.w * part3);
  }
  totals[slot] = total;
  joined[slot][quad] = sum;
  workgroupBarrier();
  if (slot == 0u) {
    for (var i = 1u; i < SLOTS; i++) {
      total += totals[i];
      sum += joined[i][quad];
    }
    let factor = select(1.0 / total, 0.0, total == 0.0);
    store_out(place(OUT, batch, head, index), quad, sum * factor);
    if (quad == 0u) {
      store_log_sum(number, select(most + log_f32(total), -inf_f32(), total == 0.0) * log_unit());
    }
  }
  workgroupBarrier();
}
