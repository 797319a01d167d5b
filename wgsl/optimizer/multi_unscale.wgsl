// Gradients divided by the scale of the loss, and whether one of them is infinite or NaN.
fn run(step: u32) {
  let gradient = load_gradient(step);
  let inverse = load_inverse();
  let left = size - step * 4u;
  let exponent = vec4<u32>(0x7f800000u);
  let overflowed = (bitcast<vec4<u32>>(gradient) & exponent) == exponent;
  if (any(overflowed & vec4<bool>(true, left > 1u, left > 2u, left > 3u))) { store_found(0u, 1.0); }
  if (inverse != 1.0) { store_gradient(step, gradient * inverse); }
}
