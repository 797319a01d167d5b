// A slice lies within one tap, so that all lanes share what depends on the tap.
struct Walk { taps: Taps, tap: vec3<u32>, channel: u32, }

fn walk_at(batch: u32, step: u32) -> Walk {
  let taps = taps_of(batch);
  let number = step / channels();
  let line = number / taps.count.z;
  let plane = line / taps.count.y;
  return Walk(taps, vec3<u32>(plane, line - plane * taps.count.y, number - line * taps.count.z),
              step - number * channels());
}

fn next_walk(walk: Walk) -> Walk {
  var next = walk;
  next.channel += SLICE;
  if (next.channel == channels()) {
    next.channel = 0u;
    next.tap.z += 1u;
    if (next.tap.z == walk.taps.count.z) {
      next.tap.z = 0u;
      next.tap.y += 1u;
      if (AXES > 2u && next.tap.y == walk.taps.count.y) {
        next.tap.y = 0u;
        next.tap.x += 1u;
      }
    }
  }
  return next;
}

fn tap_of(walk: Walk, k: u32) -> Tap { return tap_at(walk.taps, walk.tap, walk.channel); }
