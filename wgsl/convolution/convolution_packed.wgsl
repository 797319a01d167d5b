// Rows as quads, one load each.
fn load_rows(at: u32, quad: u32) -> vec4<f32> { return load_weight(at + quad); }
