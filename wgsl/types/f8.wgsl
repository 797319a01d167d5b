// The four kinds of float8, from the low bits of a u32 and back. Stores round to nearest even.

fn f32_from_f8(raw: u32, mantissa_bits: u32, bias: u32) -> f32 {
  let sign = (raw & 0x80u) << 24u;
  let exponent = (raw & 0x7fu) >> mantissa_bits;
  let mantissa = raw & ((1u << mantissa_bits) - 1u);
  if (exponent == 0u) {
    let small = f32(mantissa) * bitcast<f32>((128u - bias - mantissa_bits) << 23u);
    return bitcast<f32>(sign | bitcast<u32>(small));
  }
  return bitcast<f32>(sign | ((exponent + 127u - bias) << 23u) | (mantissa << (23u - mantissa_bits)));
}
fn nan_of_f8(raw: u32) -> f32 { return bitcast<f32>(((raw & 0x80u) << 24u) | 0x7fc00000u); }

fn load_f8e4m3fn(raw: u32) -> f32 {
  if ((raw & 0x7fu) == 0x7fu) { return nan_of_f8(raw); }
  return f32_from_f8(raw, 3u, 7u);
}
fn load_f8e4m3fnuz(raw: u32) -> f32 {
  if ((raw & 0xffu) == 0x80u) { return nan_of_f8(0u); }
  return f32_from_f8(raw, 3u, 8u);
}
fn load_f8e5m2(raw: u32) -> f32 {
  if ((raw & 0x7fu) > 0x7cu) { return nan_of_f8(raw); }
  if ((raw & 0x7fu) == 0x7cu) { return bitcast<f32>(((raw & 0x80u) << 24u) | 0x7f800000u); }
  return f32_from_f8(raw, 2u, 15u);
}
fn load_f8e5m2fnuz(raw: u32) -> f32 {
  if ((raw & 0xffu) == 0x80u) { return nan_of_f8(0u); }
  return f32_from_f8(raw, 2u, 16u);
}

// The magnitude's seven bits, as if there were no end of the range.
fn f8_from_f32(value: f32, mantissa_bits: u32, bias: u32) -> u32 {
  let magnitude = bitcast<u32>(value) & 0x7fffffffu;
  let exponent = max(magnitude >> 23u, 1u);
  if (exponent >= 128u - bias) {
    let dropped = 23u - mantissa_bits;
    let odd = (magnitude >> dropped) & 1u;
    return (magnitude - ((127u - bias) << 23u) + (1u << (dropped - 1u)) - 1u + odd) >> dropped;
  }
  let shift = 151u - bias - mantissa_bits - exponent;
  if (shift > 24u) { return 0u; }
  let significand = (magnitude & 0x7fffffu) | select(0u, 0x800000u, magnitude >= 0x800000u);
  return (significand + (1u << (shift - 1u)) - 1u + ((significand >> shift) & 1u)) >> shift;
}
fn sign_of_f8(value: f32) -> u32 { return (bitcast<u32>(value) >> 24u) & 0x80u; }
fn magnitude_of_f8(value: f32) -> u32 { return bitcast<u32>(value) & 0x7fffffffu; }

// What is too large, infinities too, becomes the largest number.
fn store_f8e4m3fn(value: f32) -> u32 {
  let magnitude = magnitude_of_f8(value);
  if (magnitude > 0x7f800000u) { return sign_of_f8(value) | 0x7fu; }
  if (magnitude >= 0x43f00000u) { return sign_of_f8(value) | 0x7eu; }
  return sign_of_f8(value) | min(f8_from_f32(value, 3u, 7u), 0x7eu);
}
fn store_f8e5m2(value: f32) -> u32 {
  let magnitude = magnitude_of_f8(value);
  if (magnitude > 0x7f800000u) { return sign_of_f8(value) | 0x7fu; }
  if (magnitude >= 0x47800000u) { return sign_of_f8(value) | 0x7cu; }
  return sign_of_f8(value) | f8_from_f32(value, 2u, 15u);
}
// These have neither infinities nor a negative zero: its bits are NaN, and what is too large is NaN.
fn store_f8e4m3fnuz(value: f32) -> u32 {
  if (magnitude_of_f8(value) >= 0x43800000u) { return 0x80u; }
  let raw = f8_from_f32(value, 3u, 8u);
  return select(sign_of_f8(value) | raw, 0u, raw == 0u);
}
fn store_f8e5m2fnuz(value: f32) -> u32 {
  if (magnitude_of_f8(value) >= 0x47800000u) { return 0x80u; }
  let raw = f8_from_f32(value, 2u, 16u);
  return select(sign_of_f8(value) | raw, 0u, raw == 0u);
}
