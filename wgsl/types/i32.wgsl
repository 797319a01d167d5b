// Arithmetic of i32, and of the smaller integers, which are cut to size when stored.

const zero_i32 = 0i;
const one_i32 = 1i;

fn is_nan_i32(a: i32) -> bool { return false; }
fn add_i32(a: i32, b: i32) -> i32 { return a + b; }
fn sub_i32(a: i32, b: i32) -> i32 { return a - b; }
fn mul_i32(a: i32, b: i32) -> i32 { return a * b; }
fn neg_i32(a: i32) -> i32 { return -a; }
fn abs_i32(a: i32) -> i32 { return abs(a); }
fn max_i32(a: i32, b: i32) -> i32 { return max(a, b); }
fn min_i32(a: i32, b: i32) -> i32 { return min(a, b); }
fn eq_i32(a: i32, b: i32) -> bool { return a == b; }
fn ne_i32(a: i32, b: i32) -> bool { return a != b; }
fn lt_i32(a: i32, b: i32) -> bool { return a < b; }
fn le_i32(a: i32, b: i32) -> bool { return a <= b; }
fn gt_i32(a: i32, b: i32) -> bool { return a > b; }
fn ge_i32(a: i32, b: i32) -> bool { return a >= b; }
fn from_index_i32(index: u32) -> i32 { return i32(index); }
fn lowest_i32() -> i32 { return bitcast<i32>(0x80000000u); }
fn highest_i32() -> i32 { return 0x7fffffff; }
fn bit_and_i32(a: i32, b: i32) -> i32 { return a & b; }
fn bit_or_i32(a: i32, b: i32) -> i32 { return a | b; }
fn bit_xor_i32(a: i32, b: i32) -> i32 { return a ^ b; }
fn bit_not_i32(a: i32) -> i32 { return ~a; }
fn mul_add_i32(a: i32, b: i32, c: i32) -> i32 { return a * b + c; }

fn is_posinf_i32(a: i32) -> bool { return false; }
fn is_neginf_i32(a: i32) -> bool { return false; }
fn signbit_i32(a: i32) -> bool { return a < 0; }
fn sign_i32(a: i32) -> i32 { return sign(a); }
fn heaviside_i32(a: i32, b: i32) -> i32 { return select(i32(a > 0), b, a == 0); }
fn fmax_i32(a: i32, b: i32) -> i32 { return max(a, b); }
fn fmin_i32(a: i32, b: i32) -> i32 { return min(a, b); }
fn floor_i32(a: i32) -> i32 { return a; }
fn ceil_i32(a: i32) -> i32 { return a; }
fn trunc_i32(a: i32) -> i32 { return a; }
fn round_i32(a: i32) -> i32 { return a; }

// The CPU raises ZeroDivisionError; a device cannot, and gives all bits set for the quotient, as CUDA does, and the
// dividend for the remainder. The smallest integer by -1 is itself.
fn div_trunc_i32(a: i32, b: i32) -> i32 {
  if (b == 0) { return -1; }
  return select(a / b, -a, b == -1);
}
fn fmod_i32(a: i32, b: i32) -> i32 {
  if (b == 0) { return a; }
  return a - b * div_trunc_i32(a, b);
}
fn remainder_i32(a: i32, b: i32) -> i32 {
  let rest = fmod_i32(a, b);
  return select(rest, rest + b, rest != 0 && (b < 0) != (rest < 0) && b != 0);
}
fn div_floor_i32(a: i32, b: i32) -> i32 {
  let quotient = div_trunc_i32(a, b);
  let rest = fmod_i32(a, b);
  return select(quotient, quotient - 1, rest != 0 && (b < 0) != (rest < 0) && b != 0);
}

// A negative shift count, or one of all bits and more, shifts everything out.
fn shl_i32(a: i32, b: i32) -> i32 {
  if (b < 0 || b > 31) { return 0; }
  return a << u32(b);
}
fn shr_i32(a: i32, b: i32) -> i32 { return a >> select(u32(b), 31u, b < 0 || b > 31); }

// Wraps as the product does; only 1 and -1 have a reciprocal.
fn pow_i32(a: i32, b: i32) -> i32 {
  if (b < 0) { return select(select(0, select(1, -1, (b & 1) != 0), a == -1), 1, a == 1); }
  var result = 1;
  var power = a;
  var left = b;
  while (left != 0) {
    if ((left & 1) != 0) { result *= power; }
    power *= power;
    left >>= 1u;
  }
  return result;
}

// Computed on magnitudes by C's remainder: the magnitude of the smallest integer is negative.
fn gcd_i32(a: i32, b: i32) -> i32 {
  var x = a;
  var y = b;
  while (x != 0) {
    let rest = y % x;
    y = x;
    x = rest;
  }
  return y;
}
fn lcm_i32(a: i32, b: i32, divisor: i32) -> i32 {
  if (divisor == 0) { return 0; }
  return abs(a / divisor * b);
}
