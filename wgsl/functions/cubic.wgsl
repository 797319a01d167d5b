// The cubic convolution kernel at a distance below two; `a` is its slope at one. Every step goes through cut().
fn cubic(t: f32, a: f32) -> f32 {
  if (t <= 1.0) { return cut(cut(cut(cut(cut((a + 2.0) * t) - (a + 3.0)) * t) * t) + 1.0); }
  return cut(cut(cut(cut(cut(cut(a * t) - 5.0 * a) * t) + 8.0 * a) * t) - 4.0 * a);
}
