// One element of the output per task, which is contiguous: a forward or, with a gap, a transposed convolution.
fn run(task: u32) {
  let size = vec3<u32>(out_d(), out_h(), out_w());
  let pixel = vec3<u32>(task / size.z / size.y % size.x, task / size.z % size.y, task % size.z);
  let plane = task / (size.x * size.y * size.z);
  let channels_out = rows() * groups();
  let channel = plane % channels_out;
  let group = channel / rows();
  let x_first = plane / channels_out * image_stride() + group * channels() * channel_stride();
  let weight_first = group * weight_group() + channel % rows() * weight_row();
  let corner = vec3<i32>(pixel) * vec3<i32>(vec3<u32>(step_d(), step_h(), step_w())) +
      vec3<i32>(vec3<u32>(base_d(), base_h(), base_w()));
  let dilation = vec3<i32>(vec3<u32>(dilation_d(), dilation_h(), dilation_w()));
  let gap = vec3<i32>(vec3<u32>(gap_d(), gap_h(), gap_w()));
  var sum = load_bias(channel * bias_stride());
  for (var d = 0u; d < kernel_d(); d++) {
    for (var h = 0u; h < kernel_h(); h++) {
      for (var w = 0u; w < kernel_w(); w++) {
        let place = corner + vec3<i32>(vec3<u32>(d, h, w)) * dilation;
        let at = vec3<u32>(place / gap);
        if (any(place < vec3<i32>()) || any(place % gap != vec3<i32>()) || any(at >= vec3<u32>(x_d(), x_h(), x_w()))) {
          continue;
        }
        let x_at = x_first + at.x * x_by_d() + at.y * x_by_h() + at.z * x_by_w();
        let weight_at = weight_first + d * weight_by_d() + h * weight_by_h() + w * weight_by_w();
        for (var c = 0u; c < channels(); c++) {
          sum = mul_add_T(load_x(x_at + c * channel_stride()), load_weight(weight_at + c * weight_channel()), sum);
        }
      }
    }
  }
  store_out(task, sum);
}
