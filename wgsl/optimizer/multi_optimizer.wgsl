// needs: optimizer_step
// A step for four neighbours of one of many tensors.
fn run(step: u32) {
  // A gradient was infinite: the step is left out.
  if (SCALED && load_found() == 1.0) { return; }
  var rate = number(rate_bits());
  if (RATE_IN_TENSOR) { rate = load_rate(); }
  let corrections = corrections_of(load_step());
  let p = load_param(step);
  var g = load_gradient(step);
  if (SCALED) {
    g = g / load_scale();
    store_gradient(step, g);
  }
  let f = load_first(step);
  let s = load_second(step);
  let m = load_most(step);
  let a = updated(Element(p.x, g.x, f.x, s.x, m.x), rate, corrections);
  let b = updated(Element(p.y, g.y, f.y, s.y, m.y), rate, corrections);
  let c = updated(Element(p.z, g.z, f.z, s.z, m.z), rate, corrections);
  let d = updated(Element(p.w, g.w, f.w, s.w, m.w), rate, corrections);
  store_param(step, vec4<f32>(a.param, b.param, c.param, d.param));
  store_first(step, vec4<f32>(a.first, b.first, c.first, d.first));
  store_second(step, vec4<f32>(a.second, b.second, c.second, d.second));
  store_most(step, vec4<f32>(a.most, b.most, c.most, d.most));
}
