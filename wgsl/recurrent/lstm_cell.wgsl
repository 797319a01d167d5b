// One unit of one sample per task, or four: V is one number or four. Gates lie as [sample][gate][unit], in the order input, forget, cell, output.
fn gate(sample: u32, number: u32, unit: u32) -> V {
  let place = number * units() + unit;
  return load_input(sample * 4u * units() + place) + load_hidden(sample * 4u * units() + place) +
      load_input_bias(place) + load_hidden_bias(place);
}

fn run(task: u32) {
  let sample = task / units();
  let unit = task % units();
  let i = sigmoids(gate(sample, 0u, unit));
  let f = sigmoids(gate(sample, 1u, unit));
  let g = tanhs(gate(sample, 2u, unit));
  let o = sigmoids(gate(sample, 3u, unit));
  let cell = fma(f, load_cell(task), i * g);
  store_next_cell(task, cell);
  store_next_hidden(task, o * tanhs(cell));
  let place = sample * 4u * units() + unit;
  store_gates(place, i);
  store_gates(place + units(), f);
  store_gates(place + 2u * units(), g);
  store_gates(place + 3u * units(), o);
}
