// a * b + c with one rounding, for a b of few digits: a driver may take fma() apart, and the CPU's compilers join the two.
fn fused(a: f32, b: f32, c: f32) -> f32 {
  let high = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
  return (high * b + c) + (a - high) * b;
}
