// needs: optimizer_step
// A step for the elements of one tensor, by places: for what the kernel over many tensors cannot bind.
fn run(task: u32) {
  // The scale of the gradients, then whether one of them was infinite: the step is left out.
  if (SCALED && load_scale(1u) == 1.0) { return; }
  var rate = number(rate_bits());
  if (RATE_IN_TENSOR) { rate = load_rate(0u); }
  var before = Element(load_param(task), load_gradient(task), 0.0, 0.0, 0.0);
  if (SCALED) {
    before.gradient = before.gradient / load_scale(0u);
    store_gradient(task, before.gradient);
  }
  if (!SGD || (MOMENTUM && !FIRST)) { before.first = load_first(task); }
  if (ADAM || ADAMW) { before.second = load_second(task); }
  if (AMSGRAD) { before.most = load_most(task); }
  var count = 0.0;
  if (!SGD) { count = load_step(0u); }
  let after = updated(before, rate, corrections_of(count));
  store_param(task, after.param);
  if (!SGD || MOMENTUM) { store_first(task, after.first); }
  if (ADAM || ADAMW) { store_second(task, after.second); }
  if (AMSGRAD) { store_most(task, after.most); }
}
