// Max pooling of dense rows of f32, four neighbouring outputs at a time: the quads of inputs under them are loaded once.
struct Best {
  value: vec4<f32>,
  place: vec4<u32>,
  is_nan: vec4<bool>,
}

// In the order of max_index of max_pool.wgsl. A NaN stays, since nothing is larger than infinity.
fn consider(best: ptr<function, Best>, value: f32, column: i32, place: u32, starts: vec4<i32>) {
  if (u32(column) >= in_w()) { return; }
  let nan = is_nan_f32(value);
  let key = select(value, inf_f32(), nan);
  let inside = vec4<u32>(column - starts) < vec4<u32>(kernel_w());
  let better = inside & ((vec4<f32>(key) > (*best).value) | vec4<bool>(nan));
  (*best).value = select((*best).value, vec4<f32>(key), better);
  (*best).place = select((*best).place, vec4<u32>(place), better);
  (*best).is_nan = (*best).is_nan | (inside & vec4<bool>(nan));
}

fn first_inside(begin: i32, step: i32) -> i32 { return select(begin, begin + (step - 1 - begin) / step * step, begin < 0); }

fn run(task: u32) {
  let row = task / row_quads();
  let w = task % row_quads() * 4u;
  let layer = row / out_h();
  let plane = layer / out_d() * in_d();
  let begin_h = i32(row % out_h() * step_h()) - i32(padding_h());
  let begin_d = i32(layer % out_d() * step_d()) - i32(padding_d());
  let first_h = first_inside(begin_h, i32(dilation_h()));
  let first_d = first_inside(begin_d, i32(dilation_d()));
  let end_h = min(begin_h + i32((kernel_h() - 1u) * dilation_h()) + 1, i32(in_h()));
  let end_d = min(begin_d + i32((kernel_d() - 1u) * dilation_d()) + 1, i32(in_d()));
  let starts = i32(w * step_w()) - i32(padding_w()) + i32(step_w()) * vec4<i32>(0, 1, 2, 3);
  let first_w = u32(max(starts.x, 0));
  let last_w = u32(min(starts.w + i32(kernel_w()), i32(in_w())) - 1);
  let corner = (u32(first_d) * in_h() + u32(first_h)) * in_w();
  var best = Best(vec4<f32>(-inf_f32()), corner + vec4<u32>(max(starts, vec4<i32>(0))), vec4<bool>());
  for (var d = first_d; d < end_d; d += i32(dilation_d())) {
    for (var h = first_h; h < end_h; h += i32(dilation_h())) {
      let line = ((plane + u32(d)) * in_h() + u32(h)) * in_w();
      let place = (u32(d) * in_h() + u32(h)) * in_w();
      for (var quad = (line + first_w) / 4u; quad <= (line + last_w) / 4u; quad++) {
        let values = load_input(quad);
        let column = i32(quad * 4u) - i32(line);
        consider(&best, values.x, column, place + u32(column), starts);
        consider(&best, values.y, column + 1, place + u32(column + 1), starts);
        consider(&best, values.z, column + 2, place + u32(column + 2), starts);
        consider(&best, values.w, column + 3, place + u32(column + 3), starts);
      }
    }
  }
  put(row * out_w() + w, select(best.value, vec4<f32>(nan_f32()), best.is_nan), best.place, out_w() - w);
}
