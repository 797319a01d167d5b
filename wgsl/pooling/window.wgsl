// The inputs under an output of a pooling, along one axis: 0 is the width, 1 the height, 2 the depth.
// x, ten words per axis: inputs, outputs, stride of what is read, step, padding, kernel, dilation (of an adaptive window
// the quotient and the remainder of inputs by outputs instead of step and padding), then those of covering.wgsl.
// x(30u): whether padding counts.
struct Window {
  first: i32,
  end: i32,
  step: i32,
  count: i32,  // how many elements an average is over
}

fn word(axis: u32, k: u32) -> u32 { return x(10u * axis + k); }
fn inputs(axis: u32) -> u32 { return word(axis, 0u); }
fn outputs(axis: u32) -> u32 { return word(axis, 1u); }
fn stride(axis: u32) -> u32 { return word(axis, 2u); }

fn strided(axis: u32, o: u32) -> Window {
  let size = i32(inputs(axis));
  let padding = i32(word(axis, 4u));
  let step = i32(word(axis, 6u));
  let begin = i32(o * word(axis, 3u)) - padding;
  let kernel = i32(word(axis, 5u));
  let end = begin + (kernel - 1) * step + 1;
  let first = select(begin, begin + (step - 1 - begin) / step * step, begin < 0);
  let last = select(end, size, end > size);
  let behind = select(end, size + padding, end > size + padding);
  return Window(first, last, step, select(last - first, behind - begin, x(30u) != 0u));
}

fn adaptive(axis: u32, o: u32) -> Window {
  let whole = word(axis, 3u);
  let rest = word(axis, 4u);
  let size = outputs(axis);
  let first = o * whole + o * rest / size;
  let end = (o + 1u) * whole + ((o + 1u) * rest + size - 1u) / size;
  return Window(i32(first), i32(end), 1, i32(end - first));
}

fn listed(axis: u32, begin: u32) -> Window {
  let kernel = word(axis, 5u);
  return Window(i32(begin), i32(begin + kernel), 1, i32(kernel));
}
