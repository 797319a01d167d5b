// The lower median of each row, and of equal values the one that a stable sort would put there. Its key is found from the
// top, two bits at a time, by counting the keys below each candidate.
var<workgroup> counts: array<vec3<u32>, WORKGROUP>;

fn total(lane: u32, mine: vec3<u32>) -> vec3<u32> {
  counts[lane] = mine;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) { counts[lane] += counts[lane + half]; }
    workgroupBarrier();
  }
  let all = counts[0];
  workgroupBarrier();
  return all;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let begin = group.x * chunk();
  let end = min(begin + chunk(), rows());
  for (var row = begin; row < end; row++) {
    let base = input_offset() + row * length();
    var mine = vec3<u32>();
    if (HAS_NAN) {
      for (var i = lane; i < length(); i += WORKGROUP) { mine.x += u32(key_is_nan(key(base + i))); }
    }
    let nans = total(lane, mine).x;
    let counted = select(length(), length() - min(nans, length() - 1u), IGNORES_NAN);
    let rank = (counted - 1u) / 2u;

    var found = no_key();
    var below = 0u;
    for (var bit = KEY_BITS; bit > 0u; bit -= 2u) {
      let a = key_with(found, 1u, bit - 2u);
      let b = key_with(found, 2u, bit - 2u);
      let c = key_with(found, 3u, bit - 2u);
      mine = vec3<u32>();
      for (var i = lane; i < length(); i += WORKGROUP) {
        let q = key(base + i);
        mine += vec3<u32>(u32(key_less(q, a)), u32(key_less(q, b)), u32(key_less(q, c)));
      }
      let n = total(lane, mine);
      if (n.z <= rank) {
        found = c;
        below = n.z;
      } else if (n.y <= rank) {
        found = b;
        below = n.y;
      } else if (n.x <= rank) {
        found = a;
        below = n.x;
      }
    }
    var occurrence = rank - below;
    if (!IGNORES_NAN && nans > 0u) {
      found = nan_key();
      occurrence = 0u;
    }

    // A stretch of the row per lane, so that occurrences are counted in order.
    let stretch = (length() + WORKGROUP - 1u) / WORKGROUP;
    let low = min(lane * stretch, length());
    let high = min(low + stretch, length());
    var same = 0u;
    for (var i = low; i < high; i++) { same += u32(key_same(key(base + i), found)); }
    counts[lane].x = same;
    workgroupBarrier();
    var before = 0u;
    for (var other = 0u; other < lane; other++) { before += counts[other].x; }
    if (before <= occurrence && occurrence < before + same) {
      for (var i = low; i < high; i++) {
        if (!key_same(key(base + i), found)) { continue; }
        if (before == occurrence) { store(row, i); }
        before++;
      }
    }
    workgroupBarrier();
  }
}
