// Conversions between compute types, with the CPU's answers where C++ leaves them open.

fn f32_from_i32(x: i32) -> f32 { return f32(x); }
fn f32_from_bool(x: bool) -> f32 { return f32(x); }
fn i32_from_bool(x: bool) -> i32 { return i32(x); }
fn bool_from_i32(x: i32) -> bool { return x != 0; }
// NaN is true; a comparison with it may be optimised away, so the bits are asked.
fn bool_from_f32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) != 0u; }

// Out of range and NaN give the smallest integer, as x86 does.
fn i32_from_f32(x: f32) -> i32 {
  let magnitude = bitcast<u32>(x) & 0x7fffffffu;
  if (magnitude >= 0x4f000000u) { return bitcast<i32>(0x80000000u); }
  return i32(x);
}
