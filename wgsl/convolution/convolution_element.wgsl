// One element of the output per invocation, in any type: what the tiles do for floats, without a tile.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let end = min((group.x + 1u) * chunk(), tiles());
  for (var task = group.x * chunk() + lane; task < end; task += WORKGROUP) {
    let size = out_size();
    let line = task / size.z;
    let plane = line / size.y / size.x;
    let pixel = vec3<u32>(line / size.y % size.x, line % size.y, task % size.z);
    let channel = plane % (rows() * groups());
    let image = plane / (rows() * groups());
    store(image * out_image() + channel * out_channel() + dot(pixel, out_stride()), sum_at(image, channel, pixel));
  }
}

fn sum_at(image: u32, channel: u32, pixel: vec3<u32>) -> T {
  let group = channel / rows();
  let x_at = x_first() + image * x_image() + group * channels() * x_channel();
  let row_at = row_first() + group * row_image() + channel % rows() * row_step();
  let corner = vec3<i32>(pixel * step()) + base();
  var sum = load_bias(channel);
  for (var d = 0u; d < kernel().x; d++) {
    for (var h = 0u; h < kernel().y; h++) {
      for (var w = 0u; w < kernel().z; w++) {
        let tap = vec3<u32>(d, h, w);
        let place = corner + vec3<i32>(tap) * dilation();
        let from_at = vec3<u32>(place / gap());
        if (any(place < vec3<i32>()) || any(place % gap() != vec3<i32>()) || any(from_at >= x_size())) { continue; }
        let x_pixel = x_at + dot(from_at, x_stride());
        let row_tap = row_at + dot(tap, row_stride());
        for (var c = 0u; c < channels(); c++) {
          sum = mul_add(load_x(x_pixel + c * x_channel()), load_row(row_tap + c * row_channel()), sum);
        }
      }
    }
  }
  return sum;
}
