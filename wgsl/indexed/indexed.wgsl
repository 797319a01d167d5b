// Indices from a tensor: checked against the dimension they index, and reported to the host when out of range.
const NONE = 0xffffffffu;

fn resolve(index: vec2<u32>, size: u32, dimension: u32) -> u32 {
  if (index.y == 0u && index.x < size) { return index.x; }
  if (WRAPS && size != 0u && index.y == 0xffffffffu && index.x >= 0u - size) { return index.x + size; }
  report(index, size, dimension);
  return NONE;
}

// The first one found is kept.
fn report(index: vec2<u32>, size: u32, dimension: u32) {
  if (atomicOr(&status[0], 1u) != 0u) { return; }
  atomicStore(&status[1], params[0].x);
  atomicStore(&status[2], index.x);
  atomicStore(&status[3], index.y);
  atomicStore(&status[4], dimension);
  atomicStore(&status[5], size);
}

// A message of the host, by its number.
fn complain(message: u32) { report(vec2<u32>(), message, 0xffffffffu); }
