// Without dropout every probability stays. Not a branch in attention_dropout, whose loop would keep the driver from
// unrolling those around it even where it is never reached.
fn kept(x: vec4<f32>, query: u32, keys: vec4<u32>) -> vec4<f32> { return x; }
fn kept_column(x: vec4<f32>, queries: vec4<u32>, key: u32) -> vec4<f32> { return x; }
