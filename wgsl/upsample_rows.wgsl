// Linear interpolation of dense rows of f32 whose length is in quads, four neighbouring outputs at a time.
struct Pair {
  first: u32,
  last: u32,
  behind: f32,  // how far from the first to the last
}

// As taps of resample.wgsl has it.
fn source(o: vec4<f32>, scale: f32, inputs: u32, outputs: u32) -> vec4<f32> {
  if (inputs == outputs) { return o; }
  var at = scale * o;
  if (corners() == 0u) { at = scale * (o + 0.5) - 0.5; }
  return clamp(at, vec4<f32>(0.0), vec4<f32>(f32(inputs - 1u)));
}

fn pair(o: u32, scale: u32, inputs: u32, outputs: u32) -> Pair {
  let at = source(vec4<f32>(f32(o)), bitcast<f32>(scale), inputs, outputs).x;
  let first = u32(at);
  return Pair(first, min(first + 1u, inputs - 1u), at - f32(first));
}

fn share(at: vec4<f32>, column: f32, value: f32) -> vec4<f32> {
  let weight = 1.0 - abs(at - column);
  return select(vec4<f32>(0.0), weight * value, weight > vec4<f32>(0.0));
}

fn blend(place: u32, high: Pair) -> vec4<f32> {
  let top = load_input(place + high.first * in_quads());
  if (high.behind == 0.0) { return top; }
  return top * (1.0 - high.behind) + load_input(place + high.last * in_quads()) * high.behind;
}

fn run(task: u32) {
  let row = task / row_quads();
  let w = task % row_quads() * 4u;
  let layer = row / out_h();
  let layer_quads = in_h() * in_quads();
  let image = layer / out_d() * in_d() * layer_quads;
  let high = pair(row % out_h(), scale_h(), in_h(), out_h());
  let deep = pair(layer % out_d(), scale_d(), in_d(), out_d());
  let at = source(f32(w) + vec4<f32>(0.0, 1.0, 2.0, 3.0), bitcast<f32>(scale_w()), in_quads() * 4u, out_w());
  let last = min((u32(at.w) + 1u) / 4u, in_quads() - 1u);
  var total = vec4<f32>();
  for (var quad = u32(at.x) / 4u; quad <= last; quad++) {
    var values = blend(image + deep.first * layer_quads + quad, high);
    if (deep.behind != 0.0) {
      values = values * (1.0 - deep.behind) + blend(image + deep.last * layer_quads + quad, high) * deep.behind;
    }
    let column = f32(quad * 4u);
    total += share(at, column, values.x) + share(at, column + 1.0, values.y) + share(at, column + 2.0, values.z) +
      share(at, column + 3.0, values.w);
  }
  put(row * out_w() + w, total, out_w() - w);
}
