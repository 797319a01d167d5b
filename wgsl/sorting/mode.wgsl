// The most frequent value of each row, of several the smallest, and the last of its places. In a sorted row the end of a
// run is found by halving, in any other every element counts its equals.
struct Best { count: u32, index: u32, key: Key, }
var<workgroup> lanes: array<Best, WORKGROUP>;

fn better(p: Best, q: Best) -> Best {
  if (q.count > p.count || (q.count == p.count && q.count > 0u && key_less(q.key, p.key))) { return q; }
  return p;
}

fn candidate(base: u32, i: u32) -> Best {
  let own = key(base + i);
  // NaN equals nothing.
  if (key_is_nan(own)) { return Best(1u, i, own); }
  if (SORTED) {
    if (i > 0u && key_same(key(base + i - 1u), own)) { return Best(0u, i, own); }
    var low = i;
    var high = length();
    while (high - low > 1u) {
      let middle = low + (high - low) / 2u;
      if (key_same(key(base + middle), own)) { low = middle; } else { high = middle; }
    }
    return Best(high - i, low, own);
  }
  var result = Best(0u, i, own);
  for (var j = 0u; j < length(); j++) {
    if (key_same(key(base + j), own)) {
      result.count++;
      result.index = j;
    }
  }
  return result;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), rows());
  for (var row = begin; row < end; row++) {
    let base = input_offset() + row * length();
    var best = Best(0u, 0u, no_key());
    for (var i = lane; i < length(); i += WORKGROUP) { best = better(best, candidate(base, i)); }
    lanes[lane] = best;
    workgroupBarrier();
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
      if (lane < half) { lanes[lane] = better(lanes[lane], lanes[lane + half]); }
      workgroupBarrier();
    }
    if (lane == 0u) { store(row, lanes[0].index); }
    workgroupBarrier();
  }
}
