// Gradients of the gates before their activations, and of the cell the step began with.
fn run(task: u32) {
  let place = task / units() * 4u * units() + task % units();
  let i = load_gates(place);
  let f = load_gates(place + units());
  let g = load_gates(place + 2u * units());
  let o = load_gates(place + 3u * units());
  let grad = load_grad_hidden(task) + load_grad_output(task);
  let shown = tanhs(load_next_cell(task));
  let cell = fma(grad * o, 1.0 - shown * shown, load_grad_cell(task));
  store_grad_gates(place, cell * g * (1.0 - i) * i);
  store_grad_gates(place + units(), cell * load_cell(task) * (1.0 - f) * f);
  store_grad_gates(place + 2u * units(), cell * i * (1.0 - g * g));
  store_grad_gates(place + 3u * units(), grad * shown * (1.0 - o) * o);
  store_grad_first_cell(task, cell * f);
}
