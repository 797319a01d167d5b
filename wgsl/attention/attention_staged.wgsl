// Shared by the kernels of attention that stage tiles in workgroup memory.
fn dot_on(a: vec4<f32>, b: vec4<f32>, c: f32) -> f32 {
  return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, c))));
}
fn largest(x: vec4<f32>) -> f32 { return max(max(x.x, x.y), max(x.z, x.w)); }
fn sum_of(x: vec4<f32>) -> f32 { return (x.x + x.y) + (x.z + x.w); }

// e^x of what is not above zero: the error of the built-in grows with |x|, as the result gets small beside 1.
fn fading(x: vec4<f32>) -> vec4<f32> { return exp2(x * 1.44269504); }

// Workgroups start in the order of their tasks: of up to 32 strips, so that they share what caches hold, the first blocks
// before the second ones.
const TOGETHER = 32u;
struct Task { strip: u32, batch: u32, block: u32, }
fn task_of(task: u32, strips: u32) -> Task {
  let turn = task / (TOGETHER * blocks());
  let inside = task - turn * TOGETHER * blocks();
  let count = min(TOGETHER, strips * batches() - turn * TOGETHER);
  let owner = turn * TOGETHER + inside % count;
  return Task(owner % strips, owner / strips, inside / count);
}
