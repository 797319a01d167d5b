// The states of a path through a target: a blank before, between and behind its labels. `lengths` has a batch element's
// time steps, labels, and the place of its first label.
fn label(element: u32, state: u32) -> u32 {
  if (state % 2u == 0u) { return blank(); }
  return load_target(load_lengths(element * 3u + 2u) + state / 2u);
}
fn score_place(element: u32, time: u32) -> u32 { return (time * batch() + element) * classes(); }
fn path_place(element: u32, time: u32, state: u32) -> u32 {
  return (element * steps() + time) * states() + state;
}

// log(exp(a) + exp(b)), where both may be -inf.
fn log_sum(a: f32, b: f32) -> f32 {
  let larger = max(a, b);
  if (larger == lowest_f32()) { return larger; }
  return larger + log1p_f32(exp_f32(min(a, b) - larger));
}
