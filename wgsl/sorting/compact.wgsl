// Visits the set elements of a mask in order. Each of x(3u) invocations owns x(1u) of the x(0u) elements.
fn piece_end(thread: u32) -> u32 {
  let end = (thread + 1u) * x(1u);
  return select(x(0u), end, end < x(0u));
}

fn count_set(thread: u32, mask: u32) -> u32 {
  var count = 0u;
  for (var k = thread * x(1u); k < piece_end(thread); k++) { count += u32(ne(load1(mask + k), zero)); }
  return count;
}
