// Arithmetic of bool, as C++ has it after promotion to int and back.

const zero_bool = false;
const one_bool = true;

fn is_nan_bool(a: bool) -> bool { return false; }
fn add_bool(a: bool, b: bool) -> bool { return a || b; }
fn mul_bool(a: bool, b: bool) -> bool { return a && b; }
fn abs_bool(a: bool) -> bool { return a; }
fn max_bool(a: bool, b: bool) -> bool { return a || b; }
fn min_bool(a: bool, b: bool) -> bool { return a && b; }
fn eq_bool(a: bool, b: bool) -> bool { return a == b; }
fn ne_bool(a: bool, b: bool) -> bool { return a != b; }
fn lt_bool(a: bool, b: bool) -> bool { return !a && b; }
fn le_bool(a: bool, b: bool) -> bool { return !a || b; }
fn gt_bool(a: bool, b: bool) -> bool { return a && !b; }
fn ge_bool(a: bool, b: bool) -> bool { return a || !b; }
fn lowest_bool() -> bool { return false; }
fn highest_bool() -> bool { return true; }
fn bit_and_bool(a: bool, b: bool) -> bool { return a && b; }
fn bit_or_bool(a: bool, b: bool) -> bool { return a || b; }
fn bit_xor_bool(a: bool, b: bool) -> bool { return a != b; }
fn bit_not_bool(a: bool) -> bool { return !a; }
fn is_posinf_bool(a: bool) -> bool { return false; }
fn is_neginf_bool(a: bool) -> bool { return false; }
fn signbit_bool(a: bool) -> bool { return false; }
fn sign_bool(a: bool) -> bool { return a; }
fn heaviside_bool(a: bool, b: bool) -> bool { return a || b; }
fn fmax_bool(a: bool, b: bool) -> bool { return a || b; }
fn fmin_bool(a: bool, b: bool) -> bool { return a && b; }
