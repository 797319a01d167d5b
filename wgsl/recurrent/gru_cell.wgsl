// One unit of one sample per task, or four: V is one number or four. Gates lie as [sample][gate][unit], in the order
// reset, update, new. What the backward needs is kept likewise: the gates, the state before, the hidden part of the new one.
fn run(task: u32) {
  let sample = task / units();
  let unit = task % units();
  let r_at = unit;
  let z_at = unit + units();
  let n_at = unit + 2u * units();
  let base = sample * 3u * units();
  let r = sigmoids(load_input(base + r_at) + load_hidden(base + r_at) + load_input_bias(r_at) +
      load_hidden_bias(r_at));
  let z = sigmoids(load_input(base + z_at) + load_hidden(base + z_at) + load_input_bias(z_at) +
      load_hidden_bias(z_at));
  let inner = load_hidden(base + n_at) + load_hidden_bias(n_at);
  let n = tanhs(fma(r, inner, load_input(base + n_at) + load_input_bias(n_at)));
  let state = load_state(task);
  store_next(task, fma(z, state - n, n));
  let place = sample * 5u * units() + unit;
  store_kept(place, r);
  store_kept(place + units(), z);
  store_kept(place + 2u * units(), n);
  store_kept(place + 3u * units(), state);
  store_kept(place + 4u * units(), inner);
}
