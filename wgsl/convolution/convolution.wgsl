// A tile of a gathered product per workgroup: ROWS rows, which all lanes share, by four columns of each lane. The form's
// file says what rows and columns are, along which walk the sum runs, and where an element of a column is found.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let end = min((group.x + 1u) * chunk(), tiles());
  for (var task = group.x * chunk(); task < end; task++) {
    let tile = tile_at(task);
    let columns = columns_at(tile, lane);
    var acc: array<vec4<f32>, ROWS>;
    for (var i = 0u; i < ROWS; i++) { acc[i] = vec4<f32>(); }
    var walk = first_step(tile);
    for (; walk.left > 0u; walk = next_step(walk)) {
      if (!is_counted(tile, walk)) { continue; }
      var source = gather(tile, columns, walk);
      var row_at = rows_at(tile, walk);
      for (var i = 0u; i < inner_steps(); i++) {
        let b = vec4<f32>(load_x(source.at.x), load_x(source.at.y), load_x(source.at.z), load_x(source.at.w));
        add_rows(&acc, row_at, lane, select(vec4<f32>(), b, is_inside(source)));
        source = next_element(source);
        row_at += inner_stride();
      }
    }
    let target_at = targets(tile, lane);
    for (var i = 0u; i < ROWS; i++) {
      if (tile.row + i < rows()) {
        let channel = tile.group * rows() + tile.row + i;
        let value = acc[i] + load_bias(channel);
        let at = target_at.at + channel * out_channel();
        if (target_at.kept.x) { store(at.x, value.x); }
        if (target_at.kept.y) { store(at.y, value.y); }
        if (target_at.kept.z) { store(at.z, value.z); }
        if (target_at.kept.w) { store(at.w, value.w); }
      }
    }
  }
}

struct Places { at: vec4<u32>, kept: vec4<bool>, }

// Four rows at a time: acc += a * b.
fn add_quad(acc: ptr<function, array<vec4<f32>, ROWS>>, first: u32, a: vec4<f32>, b: vec4<f32>) {
  (*acc)[first] = fma(vec4<f32>(a.x), b, (*acc)[first]);
  (*acc)[first + 1u] = fma(vec4<f32>(a.y), b, (*acc)[first + 1u]);
  (*acc)[first + 2u] = fma(vec4<f32>(a.z), b, (*acc)[first + 2u]);
  (*acc)[first + 3u] = fma(vec4<f32>(a.w), b, (*acc)[first + 3u]);
}
