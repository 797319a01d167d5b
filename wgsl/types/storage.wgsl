// Elements smaller than a word: from the low bits of a u32 and back. Stores give the bits alone, the rest zero.

fn load_f16(raw: u32) -> f32 { return unpack2x16float(raw).x; }
fn load_bf16(raw: u32) -> f32 { return bitcast<f32>(raw << 16u); }
fn load_i16(raw: u32) -> i32 { return extractBits(bitcast<i32>(raw), 0u, 16u); }
fn load_u16(raw: u32) -> i32 { return i32(raw & 0xffffu); }
fn load_i8(raw: u32) -> i32 { return extractBits(bitcast<i32>(raw), 0u, 8u); }
fn load_u8(raw: u32) -> i32 { return i32(raw & 0xffu); }
fn load_bool(raw: u32) -> bool { return (raw & 0xffu) != 0u; }

// pack2x16float leaves a value beyond f16's range, and the rounding, to the implementation.
fn store_f16(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  let sign = (bits >> 16u) & 0x8000u;
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return sign | 0x7e00u; }
  if (magnitude >= 0x477ff000u) { return sign | 0x7c00u; }
  if (magnitude < 0x33000001u) { return sign; }
  if (magnitude < 0x38800000u) {
    let shift = 126u - (magnitude >> 23u);
    let mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    let half = 1u << (shift - 1u);
    return sign | ((mantissa + half - 1u + ((mantissa >> shift) & 1u)) >> shift);
  }
  return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u);
}

fn store_bf16(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return 0x7fc0u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}

fn store_i16(value: i32) -> u32 { return bitcast<u32>(value) & 0xffffu; }
fn store_u16(value: i32) -> u32 { return bitcast<u32>(value) & 0xffffu; }
fn store_i8(value: i32) -> u32 { return bitcast<u32>(value) & 0xffu; }
fn store_u8(value: i32) -> u32 { return bitcast<u32>(value) & 0xffu; }
fn store_bool(value: bool) -> u32 { return u32(value); }
