// Linear interpolation of dense rows of f32 whose length is in quads: four neighbouring outputs of two rows at a time.
struct Pair {
  first: u32,
  last: u32,
  behind: f32,  // how far from the first to the last
}

// As taps of resample.wgsl has it.
fn source(o: vec4<f32>, scale: f32, inputs: u32, outputs: u32) -> vec4<f32> {
  if (inputs == outputs) { return o; }
  var at = scale * o;
  if (corners() == 0u) {
    let centre = o + 0.5;
    at = vec4<f32>(fused(scale, centre.x, -0.5), fused(scale, centre.y, -0.5), fused(scale, centre.z, -0.5),
      fused(scale, centre.w, -0.5));
  }
  return clamp(at, vec4<f32>(0.0), vec4<f32>(f32(inputs - 1u)));
}

fn pair(o: u32, scale: u32, inputs: u32, outputs: u32) -> Pair {
  let at = source(vec4<f32>(f32(o)), bitcast<f32>(scale), inputs, outputs).x;
  let first = u32(at);
  return Pair(first, min(first + 1u, inputs - 1u), at - f32(first));
}

fn mixed(a: vec4<f32>, b: vec4<f32>, behind: f32) -> vec4<f32> {
  return select(a * (1.0 - behind) + b * behind, a, behind == 0.0);
}

struct Rows {
  upper: vec4<f32>,
  lower: vec4<f32>,
}

// Four columns of two neighbouring rows of outputs, which mostly lie between the same inputs.
fn rows_at(place: u32, upper: Pair, lower: Pair) -> Rows {
  let a = load_input(place + upper.first * in_quads());
  let b = load_input(place + upper.last * in_quads());
  let first = mixed(a, b, upper.behind);
  if (lower.first == upper.first) { return Rows(first, mixed(a, b, lower.behind)); }
  var top = b;
  if (lower.first != upper.last) { top = load_input(place + lower.first * in_quads()); }
  return Rows(first, mixed(top, load_input(place + lower.last * in_quads()), lower.behind));
}

fn add_column(total: ptr<function, Rows>, at: vec4<f32>, column: f32, upper: f32, lower: f32) {
  let weight = 1.0 - abs(at - column);
  let near = weight > vec4<f32>(0.0);
  (*total).upper += select(vec4<f32>(0.0), weight * upper, near);
  (*total).lower += select(vec4<f32>(0.0), weight * lower, near);
}

fn run(task: u32) {
  let w = task % row_quads() * 4u;
  let h = task / row_quads() % row_pairs() * 2u;
  let layer = task / row_quads() / row_pairs();
  let layer_quads = in_h() * in_quads();
  let image = layer / out_d() * in_d() * layer_quads;
  let upper = pair(h, scale_h(), in_h(), out_h());
  let lower = pair(min(h + 1u, out_h() - 1u), scale_h(), in_h(), out_h());
  let deep = pair(layer % out_d(), scale_d(), in_d(), out_d());
  let at = source(f32(w) + vec4<f32>(0.0, 1.0, 2.0, 3.0), bitcast<f32>(scale_w()), in_quads() * 4u, out_w());
  let last = min((u32(at.w) + 1u) / 4u, in_quads() - 1u);
  var total = Rows(vec4<f32>(), vec4<f32>());
  for (var quad = u32(at.x) / 4u; quad <= last; quad++) {
    var rows = rows_at(image + deep.first * layer_quads + quad, upper, lower);
    if (deep.behind != 0.0) {
      let behind = rows_at(image + deep.last * layer_quads + quad, upper, lower);
      rows = Rows(mixed(rows.upper, behind.upper, deep.behind), mixed(rows.lower, behind.lower, deep.behind));
    }
    let column = f32(quad * 4u);
    add_column(&total, at, column, rows.upper.x, rows.lower.x);
    add_column(&total, at, column + 1.0, rows.upper.y, rows.lower.y);
    add_column(&total, at, column + 2.0, rows.upper.z, rows.lower.z);
    add_column(&total, at, column + 3.0, rows.upper.w, rows.lower.w);
  }
  let place = (layer * out_h() + h) * out_w() + w;
  put(place, total.upper, out_w() - w);
  if (h + 1u < out_h()) { put(place + out_w(), total.lower, out_w() - w); }
}
