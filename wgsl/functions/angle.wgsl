// needs: wide
// Angles of any size as quarter turns and a rest, for sines and cosines.

// A multiple of a quarter turn, and the rest of the angle.
struct Angle {
  rest: f32,
  quarter: i32,
}

const kTwoOverPi = array<u32, 7>(0u, 0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u);

// Payne and Hanek: the bits of 2 / pi that matter, times the mantissa, in integers.
fn reduce_large(x: f32) -> Angle {
  let bits = bitcast<u32>(x);
  let mantissa = ((bits & 0x7fffffu) << 8u) | 0x80000000u;
  let exponent = ((bits >> 23u) & 0xffu) - 126u;
  let first = exponent >> 5u;
  let shift = exponent & 31u;
  var digits = kTwoOverPi;
  var high = digits[min(first, 6u)];
  var middle = digits[min(first + 1u, 6u)];
  var low = digits[min(first + 2u, 6u)];
  let next = digits[min(first + 3u, 6u)];
  if (shift != 0u) {
    high = (high << shift) | (middle >> (32u - shift));
    middle = (middle << shift) | (low >> (32u - shift));
    low = (low << shift) | (next >> (32u - shift));
  }
  let carry = mul_wide(mantissa, low).y;
  let product = mul_wide(mantissa, middle);
  var fraction = product.x + carry;
  var top = product.y + u32(fraction < carry) + mantissa * high;
  var quarter = i32(top >> 30u);
  // Two bits of quarters, then the fraction: round it to the nearest quarter.
  top &= 0x3fffffffu;
  var negative = false;
  if ((top & 0x20000000u) != 0u) {
    quarter += 1;
    negative = true;
    let borrow = u32(fraction != 0u);
    fraction = 0u - fraction;
    top = 0x40000000u - top - borrow;
  }
  let zeros = select(countLeadingZeros(top), 32u + countLeadingZeros(fraction), top == 0u);
  var lead = fraction;
  if (zeros < 32u) {
    lead = top;
    if (zeros != 0u) { lead = (top << zeros) | (fraction >> (32u - zeros)); }
  } else if (zeros < 64u) {
    lead = fraction << (zeros - 32u);
  }
  var rest = f32(lead) * exp2i_f32(-30 - i32(zeros)) * 1.57079633;
  if (negative) { rest = -rest; }
  if ((bits & 0x80000000u) != 0u) { return Angle(-rest, -quarter); }
  return Angle(rest, quarter);
}
