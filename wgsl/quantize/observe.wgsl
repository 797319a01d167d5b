// Moving averages of the least and the greatest value, and the scale and zero point that cover them.
fn number(bits: u32) -> f32 { return bitcast<f32>(bits); }

fn moved(average: f32, value: f32) -> f32 {
  return select(fma(number(weight()), value - average, average), value, is_inf_f32(average));
}

fn run(task: u32) {
  var low = load_running_min(task);
  var high = load_running_max(task);
  if (load_observer_on(0u) != 0.0) {
    low = moved(low, load_low(task));
    high = moved(high, load_high(task));
    store_running_min(task, low);
    store_running_max(task, high);
  }
  if (load_fake_quant_on(0u) == 0.0) { return; }
  let least = number(quant_min());
  let greatest = number(quant_max());
  let symmetric = VARIANT == 1u;
  if (symmetric) {
    let half = floor((greatest - least) / 2.0);
    let reach = max(abs(low / (half + 1.0)), abs(high / half));
    low = -reach * (half + 1.0);
    high = reach * half;
  }
  low = min(low, 0.0);
  high = max(high, 0.0);
  var scale = (high - low) / (greatest - least);
  if (scale == 0.0 || is_inf_f32(1.0 / scale)) { scale = 0.1; }
  if (scale < 6.1e-5) {  // as PyTorch: the range grows with the scale
    let before = scale;
    scale = 6.1e-5;
    if (low == 0.0) {
      high = scale * (greatest - least);
    } else if (high == 0.0) {
      low = -scale * (greatest - least);
    } else {
      low *= scale / before;
      high *= scale / before;
    }
  }
  // From the end of the range whose error is smaller.
  let from_low = least - low / scale;
  let from_high = greatest - high / scale;
  var zero = select(from_high, from_low, abs(least) - abs(low / scale) < abs(greatest) - abs(high / scale));
  if (symmetric && low < 0.0 && high > 0.0) { zero = (least + greatest) / 2.0; }
  store_scale(task, scale);
  store_zero_point(task, u32(i32(round(clamp(zero, least, greatest)))));
}
