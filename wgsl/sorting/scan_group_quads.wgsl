// needs: scan_group
// An item is a quad of neighbours, which are scanned among themselves first.
struct Quad { a: Acc, b: Acc, c: Acc, d: Acc }

fn scanned(line: u32, quad: u32, end: u32) -> Quad {
  let values = load_input(line * length() + min(quad, end - 1u));
  let i = quad * 4u;
  let none = identity();
  if (quad >= end) { return Quad(none, none, none, none); }
  let a = map(values.x, i);
  let b = combine(a, map(values.y, i + 1u));
  let c = combine(b, map(values.z, i + 2u));
  return Quad(a, b, c, combine(c, map(values.w, i + 3u)));
}
fn last_of(p: Quad) -> Acc { return p.d; }
fn keep(line: u32, quad: u32, before: Acc, item: Quad) {
  let place = line * length() + quad;
  let a = combine(before, item.a);
  let b = combine(before, item.b);
  let c = combine(before, item.c);
  let d = combine(before, item.d);
  store_output(place, vec4<T>(finish(a), finish(b), finish(c), finish(d)));
  store_index(place * 2u, vec4<u32>(a.y, 0u, b.y, 0u));
  store_index(place * 2u + 1u, vec4<u32>(c.y, 0u, d.y, 0u));
}
