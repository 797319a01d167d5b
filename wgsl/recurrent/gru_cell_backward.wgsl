// Gradients of the gates before their activations, from the input's side and from the hidden one, and of the state before.
fn run(task: u32) {
  let sample = task / units();
  let unit = task % units();
  let place = sample * 5u * units() + unit;
  let r = load_kept(place);
  let z = load_kept(place + units());
  let n = load_kept(place + 2u * units());
  let state = load_kept(place + 3u * units());
  let inner = load_kept(place + 4u * units());
  let grad = load_grad(task) + load_grad_output(task);
  let grad_z = grad * (state - n) * (1.0 - z) * z;
  let grad_n = grad * (1.0 - z) * (1.0 - n * n);
  let grad_r = grad_n * inner * (1.0 - r) * r;
  let base = sample * 3u * units() + unit;
  store_grad_input(base, grad_r);
  store_grad_input(base + units(), grad_z);
  store_grad_input(base + 2u * units(), grad_n);
  store_grad_hidden(base, grad_r);
  store_grad_hidden(base + units(), grad_z);
  store_grad_hidden(base + 2u * units(), grad_n * r);
  store_grad_state(task, grad * z);
}
