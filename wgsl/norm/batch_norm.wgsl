// One channel per task: its statistics, joined from parts of `size` elements each, into what the forward saves, the
// running statistics, and the factor of the transform. Without parts the factor is that of the running statistics.
fn number(bits: u32) -> f32 { return bitcast<f32>(bits); }

fn inverse_deviation(variance: f32) -> f32 {
  let square = variance + number(epsilon_bits());
  return select(1.0 / sqrt(square), 0.0, square == 0.0);
}

fn weight_of(channel: u32) -> f32 { return select(1.0, load_weight(channel), has_weight() != 0u); }

fn run(channel: u32) {
  if (parts() == 0u) {
    store_factor(channel, inverse_deviation(load_running_var(channel)) * weight_of(channel));
    return;
  }
  var mean = 0.0;
  for (var p = 0u; p < parts(); p++) { mean += load_center(p * tasks() + channel); }
  mean /= f32(parts());
  var squares = 0.0;
  for (var p = 0u; p < parts(); p++) {
    let apart = load_center(p * tasks() + channel) - mean;
    squares += load_spread(p * tasks() + channel) + apart * apart * f32(size());
  }
  let count = f32(parts() * size());
  let scale = inverse_deviation(squares / count);
  store_mean(channel, mean);
  store_scale(channel, scale);
  store_factor(channel, scale * weight_of(channel));
  let momentum = number(momentum_bits());
  store_running_mean(channel, momentum * mean + (1.0 - momentum) * load_running_mean(channel));
  store_running_var(channel, momentum * (squares / (count - 1.0)) + (1.0 - momentum) * load_running_var(channel));
}
