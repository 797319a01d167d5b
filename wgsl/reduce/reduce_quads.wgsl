fn no_quad() -> Quad { return Quad(identity(), identity(), identity(), identity()); }
fn combine_quads(p: Quad, q: Quad) -> Quad {
  return Quad(combine(p.a, q.a), combine(p.b, q.b), combine(p.c, q.c), combine(p.d, q.d));
}
