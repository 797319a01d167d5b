// Where an output of reflection or replication padding comes from, and where an input went.
// x, for width, height and depth in turn: padding before, input size, input stride, output size
fn source(o: u32, axis: u32, mirrors: bool) -> u32 {
  let last = i32(x(4u * axis + 1u)) - 1;
  var i = i32(o) - bitcast<i32>(x(4u * axis));
  if (mirrors) {
    i = select(i, -i, i < 0);
    i = select(i, 2 * last - i, i > last);
  } else {
    i = select(i, 0, i < 0);
    i = select(i, last, i > last);
  }
  return u32(i) * x(4u * axis + 2u);
}
