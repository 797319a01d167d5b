// A slice may begin in one tap and end in another one: each step finds its own.
struct Walk { taps: Taps, step: u32, }

fn walk_at(batch: u32, step: u32) -> Walk { return Walk(taps_of(batch), step); }
fn next_walk(walk: Walk) -> Walk { return Walk(walk.taps, walk.step + SLICE); }

// Exact for numbers below 2^19, and cheaper than a division.
fn divided(number: u32, by: u32) -> u32 { return u32((f32(number) + 0.5) * (1.0 / f32(by))); }

fn tap_of(walk: Walk, k: u32) -> Tap {
  let count = walk.taps.count;
  let step = walk.step + k;
  let number = divided(step, channels());
  let line = divided(number, count.z);
  let plane = select(0u, divided(line, count.y), AXES > 2u);
  return tap_at(walk.taps, vec3<u32>(plane, line - plane * count.y, number - line * count.z),
                step - number * channels());
}
