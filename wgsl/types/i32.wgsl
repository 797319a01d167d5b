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
