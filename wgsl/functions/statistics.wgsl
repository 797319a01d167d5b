// The distance of one element from itself: none, but for infinities and NaN.
fn own_spread(a: f32) -> f32 {
  let finite = (bitcast<u32>(a) & 0x7f800000u) != 0x7f800000u;
  return select(nan_f32(), 0.0, finite);
}

// The mean of a set, the sum of squared distances from it, and the set's size.
fn joined_spread(p: Acc, q: Acc) -> Acc {
  if (p.z == 0.0) { return q; }
  if (q.z == 0.0) { return p; }
  let n = p.z + q.z;
  let share = q.z / n;
  let apart = q.x - p.x;
  return Acc(p.x + apart * share, p.y + q.y + apart * apart * p.z * share, n);
}

fn variance(squares: f32, count: u32, correction: f32) -> f32 {
  let freedom = f32(count) - correction;
  if (freedom > 0.0) { return squares / freedom; }
  if (squares > 0.0 && !is_nan_f32(squares)) { return inf_f32(); }
  return nan_f32();
}
