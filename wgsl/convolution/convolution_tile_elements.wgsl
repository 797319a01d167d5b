// Four neighbours of the result, each by itself.
struct Places { at: vec4<u32>, are_there: vec4<bool>, }

fn places_of(batch: u32, column: u32) -> Places {
  let c = vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u);
  if (PIXELS_ARE_ROWS) { return Places(c * out_channel(), c < vec4<u32>(columns())); }
  let x = target_of(batch, c.x);
  let y = target_of(batch, c.y);
  let z = target_of(batch, c.z);
  let w = target_of(batch, c.w);
  return Places(vec4<u32>(x.at, y.at, z.at, w.at), vec4<bool>(x.is_there, y.is_there, z.is_there, w.is_there));
}

fn store_four(batch: u32, row: u32, column: u32, product: vec4<f32>, places: Places) {
  var at = places.at;
  var are_there = places.are_there;
  var bias = vec4<f32>(bias_of(batch, row));
  if (PIXELS_ARE_ROWS) {
    let pixel = target_of(batch, row);
    at += vec4<u32>(pixel.at);
    are_there &= vec4<bool>(pixel.is_there);
    bias = vec4<f32>(bias_of(batch, column), bias_of(batch, column + 1u), bias_of(batch, column + 2u),
                     bias_of(batch, column + 3u));
  } else {
    at += vec4<u32>(row * out_channel());
  }
  let value = product + bias;
  if (are_there.x) { store(at.x, value.x); }
  if (are_there.y) { store(at.y, value.y); }
  if (are_there.z) { store(at.z, value.z); }
  if (are_there.w) { store(at.w, value.w); }
}
