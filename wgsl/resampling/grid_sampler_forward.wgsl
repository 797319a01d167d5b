// One place of the grid: a value for every channel.
fn run(task: u32) {
  let s = sample_at(task);
  var image = s.batch * stride_n();
  var out = s.batch * result_n() + s.d * result_d() + s.h * result_h() + s.w * result_w();
  for (var channel = 0u; channel < channels(); channel++) {
    var total = 0.0;
    for (var k = 0u; k < LAYERS; k++) {
      for (var j = 0u; j < TAPS; j++) {
        let row = image + s.deep.place[k] + s.high.place[j];
        let known = s.deep.inside[k] && s.high.inside[j];
        var part = 0.0;
        for (var i = 0u; i < TAPS; i++) {
          let value = select(0.0, load_input(row + s.wide.place[i]), known && s.wide.inside[i]);
          if (MODE == BICUBIC) {
            part = cut(part + cut(value * s.wide.weight[i]));
          } else {
            let weight = cut(cut(s.wide.weight[i] * s.high.weight[j]) * s.deep.weight[k]);
            total = cut(total + cut(value * weight));
          }
        }
        if (MODE == BICUBIC) { total = cut(total + cut(part * s.high.weight[j])); }
      }
    }
    store_output(out, total);
    image += stride_c();
    out += result_c();
  }
}
