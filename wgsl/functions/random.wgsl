// Random words into distributions over floats. Bits must not depend on the adapter: there is no division and no
// function of WGSL's own here, whose last bits are open, and no product is fused into a sum.

// word(4) is zero, which no compiler knows: the product is rounded before anything else happens to it.
fn rounded(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ word(4u)); }
fn mul_then_add(a: f32, b: f32, c: f32) -> f32 { return rounded(a * b) + c; }

// In [0, 1), of as many bits as the dtype has, so that rounding to it never gives 1. word(5): 32 less those bits.
fn random_unit(bits: u32) -> f32 {
  let shift = word(5u);
  return f32(bits >> shift) * bitcast<f32>((95u + shift) << 23u);
}

// True with probability word(5) / 2^32, or always if word(6) is set.
fn random_event(bits: u32) -> bool { return bits < word(5u) || word(6u) != 0u; }

fn random_uniform(bits: u32, low: f32, high: f32) -> f32 {
  let x = mul_then_add(random_unit(bits), rounded(high - low), low);
  return select(low, x, x < high);
}

// log(1 + f) for f between sqrt(1/2) - 1 and sqrt(2) - 1.
fn random_log_near_one(f: f32) -> f32 {
  var p = mul_then_add(f, -0.07451186, 0.1280661);
  p = mul_then_add(f, p, -0.13266031);
  p = mul_then_add(f, p, 0.1419965);
  p = mul_then_add(f, p, -0.16608369);
  p = mul_then_add(f, p, 0.20000939);
  p = mul_then_add(f, p, -0.25001579);
  p = mul_then_add(f, p, 0.33333345);
  p = mul_then_add(f, p, -0.49999989);
  p = mul_then_add(f, p, 1.0);
  return rounded(f * p);
}

// -log of (bits + 1/2) / 2^32: positive.
fn random_exponential(bits: u32) -> f32 {
  let zeros = countLeadingZeros(bits);
  let mantissa = select((bits << (zeros & 31u)) >> 8u, 0x800000u, bits == 0u) & 0x7fffffu;
  let halve = mantissa > 0x3504f3u;
  let f = bitcast<f32>(mantissa | select(0x3f800000u, 0x3f000000u, halve)) - 1.0;
  let e = f32(zeros + select(1u, 0u, halve));
  return rounded(e * 0.69314718) - random_log_near_one(f);
}

// Of a positive number whose reciprocal is not denormal.
fn random_reciprocal(x: f32) -> f32 {
  var y = bitcast<f32>(0x7ef311c7u - bitcast<u32>(x));
  for (var i = 0u; i < 4u; i++) { y = rounded(y * (2.0 - rounded(x * y))); }
  return y;
}

fn random_sqrt(x: f32) -> f32 {
  var y = bitcast<f32>(0x5f3759dfu - (bitcast<u32>(x) >> 1u));
  for (var i = 0u; i < 3u; i++) { y = rounded(y * (1.5 - rounded(rounded(0.5 * x * y) * y))); }
  let root = rounded(x * y);
  return root + rounded(rounded(0.5 * y) * (x - rounded(root * root)));
}

// Sine and cosine of bits / 2^32 of a turn; neither is ever zero.
fn random_turn(bits: u32) -> vec2<f32> {
  let quadrant = (bits + 0x20000000u) >> 30u;
  let rest = (bitcast<i32>(bits - (quadrant << 30u)) >> 6u) | 1;
  let x = rounded(f32(rest) * 9.3626757e-8);
  let z = rounded(x * x);
  var s = mul_then_add(z, 2.7173075e-6, -1.98391981e-4);
  s = mul_then_add(z, s, 8.3333288e-3);
  s = mul_then_add(z, s, -0.16666667);
  s = mul_then_add(rounded(x * z), s, x);
  var c = mul_then_add(z, -2.7173048e-7, 2.47989235e-5);
  c = mul_then_add(z, c, -1.388888e-3);
  c = mul_then_add(z, c, 0.041666667);
  c = mul_then_add(z, c, -0.5);
  c = mul_then_add(z, c, 1.0);
  let turned = select(vec2<f32>(s, c), vec2<f32>(c, -s), (quadrant & 1u) == 1u);
  return select(turned, -turned, (quadrant & 2u) == 2u);
}

// Box and Muller: two words give two normals, to two neighbouring lanes.
fn random_normal(block: vec4<u32>, lane: u32) -> f32 {
  let pair = select(block.xy, block.zw, lane >= 2u);
  let radius = random_sqrt(2.0 * random_exponential(pair.x));
  let turn = random_turn(pair.y);
  return rounded(radius * select(turn.y, turn.x, (lane & 1u) == 1u));
}

fn random_cauchy(bits: u32) -> f32 {
  // Half a turn, centred.
  let turn = random_turn(bitcast<u32>(bitcast<i32>(bits ^ 0x80000000u) >> 1u));
  return rounded(turn.x * random_reciprocal(turn.y));
}

fn random_exp(x: f32) -> f32 {
  if (x > 88.72283) { return bitcast<f32>(0x7f800000u | word(4u)); }
  if (x < -103.9) { return 0.0; }
  let n = floor(mul_then_add(x, 1.442695, 0.5));
  let r = mul_then_add(n, -1.42860682e-6, mul_then_add(n, -0.693145752, x));
  var p = mul_then_add(r, 1.9907702e-4, 1.3948698e-3);
  p = mul_then_add(r, p, 8.3332833e-3);
  p = mul_then_add(r, p, 0.041666217);
  p = mul_then_add(r, p, 0.16666667);
  p = mul_then_add(r, p, 0.5);
  p = mul_then_add(r, p, 1.0);
  p = mul_then_add(r, p, 1.0);
  let k = i32(n);
  let half = k >> 1u;
  return p * bitcast<f32>(bitcast<u32>(half + 127) << 23u) * bitcast<f32>(bitcast<u32>(k - half + 127) << 23u);
}
