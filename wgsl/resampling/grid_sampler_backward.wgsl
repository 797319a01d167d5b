// One place of the grid: its gradient, and what it adds to that of the image, which is contiguous.
const SCATTERS = (VARIANT & 8u) != 0u;

fn add_to_image(place: u32, value: f32) {
  var old = load_sums(place);
  loop {
    if (exchange_sums(place, old, bitcast<u32>(bitcast<f32>(old) + value))) { break; }
    old = load_sums(place);
  }
}

fn run(task: u32) {
  let s = sample_at(task);
  var image = s.batch * stride_n();
  var gradient = s.batch * result_n() + s.d * result_d() + s.h * result_h() + s.w * result_w();
  var plane = s.batch * channels() * in_d() * in_h() * in_w();
  var sum = vec3<f32>();
  for (var channel = 0u; channel < channels(); channel++) {
    let g = load_gradient(gradient);
    for (var k = 0u; k < LAYERS; k++) {
      for (var j = 0u; j < TAPS; j++) {
        for (var i = 0u; i < TAPS; i++) {
          if (!(s.deep.inside[k] && s.high.inside[j] && s.wide.inside[i])) { continue; }
          let weight = vec3<f32>(s.wide.weight[i], s.high.weight[j], s.deep.weight[k]);
          let slope = vec3<f32>(s.wide.slope[i], s.high.slope[j], s.deep.slope[k]);
          if (MODE != NEAREST) {
            let value = g * load_input(image + s.deep.place[k] + s.high.place[j] + s.wide.place[i]);
            sum += value * slope * weight.yxx * weight.zzy;
          }
          if (SCATTERS) {
            let place = plane + s.deep.place[k] + s.high.place[j] + s.wide.place[i];
            add_to_image(place, g * weight.x * weight.y * weight.z);
          }
        }
      }
    }
    image += stride_c();
    plane += in_d() * in_h() * in_w();
    gradient += result_c();
  }
  let place = task * select(2u, 3u, DEEP);
  store_grid_gradient(place, sum.x * s.wide.rate);
  store_grid_gradient(place + 1u, sum.y * s.high.rate);
  if (DEEP) { store_grid_gradient(place + 2u, sum.z * s.deep.rate); }
}
