// The scale of the loss after a step: smaller where a gradient overflowed, larger after `interval` steps without.
fn run(task: u32) {
  let scale = load_scale(task);
  if (load_found(task) != 0.0) {
    store_scale(task, scale * bitcast<f32>(backoff()));
    store_tracker(task, 0u);
    return;
  }
  let successes = load_tracker(task) + 1u;
  if (successes != interval()) {
    store_tracker(task, successes);
    return;
  }
  let grown = scale * bitcast<f32>(growth());
  if ((bitcast<u32>(grown) & 0x7f800000u) != 0x7f800000u) { store_scale(task, grown); }
  store_tracker(task, 0u);
}
