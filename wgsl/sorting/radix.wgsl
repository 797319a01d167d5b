// A stable sort of pairs {key, position} by one digit of the key. Each of THREADS invocations owns a piece of the pairs
// and a column of the table of counts, so nothing depends on the order in which they run.
// x: pairs in all, pairs per thread, shift of the digit, threads
const DIGITS = 256u;

fn piece_end(thread: u32) -> u32 { return min((thread + 1u) * x(1u), x(0u)); }
fn digit_of(key: u32) -> u32 { return (key >> x(2u)) & (DIGITS - 1u); }

fn count_digits(thread: u32) {
  for (var digit = 0u; digit < DIGITS; digit++) { store(digit * x(3u) + thread, 0u); }
  for (var k = thread * x(1u); k < piece_end(thread); k++) {
    let at = digit_of(load1(k).x) * x(3u) + thread;
    store(at, load0(at) + 1u);
  }
}
