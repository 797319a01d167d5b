// Losses of pairs of classes by how far one falls short of being a margin above the other. Operands of a sample: 1 scores,
// 2 weights or marks of the targets, 3 targets. x: classes, strides of scores, 2 and targets by class.
fn score(base: u32, class_: u32) -> f32 { return load1(base + class_ * x(1u)); }

// multi_margin_loss. x(4): power, x(5): whether there are weights, x(6): margin.
fn short_of(base: u32, other: u32, own: f32) -> f32 { return bitcast<f32>(x(6u)) - own + score(base, other); }
fn weight_of(base: u32, label: u32) -> f32 { return select(1.0, load2(base + label * x(2u)), x(5u) != 0u); }

fn multi_margin(scores: u32, weights: u32, label: u32) -> f32 {
  let own = score(scores, label);
  var sum = 0.0;
  for (var other = 0u; other < x(0u); other++) {
    let z = short_of(scores, other, own);
    if (other != label && z > 0.0) { sum += select(z, z * z, x(4u) == 2u); }
  }
  return sum * weight_of(weights, label) / f32(x(0u));
}

// For a class that is not the label's.
fn multi_margin_slope(scores: u32, other: u32, own: f32) -> f32 {
  let z = short_of(scores, other, own);
  if (!(z > 0.0)) { return 0.0; }
  return select(1.0, 2.0 * z, x(4u) == 2u);
}

fn multi_margin_gradient(scores: u32, weights: u32, label: u32, own_class: u32) -> f32 {
  let own = score(scores, label);
  let factor = weight_of(weights, label) / f32(x(0u));
  if (own_class != label) { return multi_margin_slope(scores, own_class, own) * factor; }
  var sum = 0.0;
  for (var other = 0u; other < x(0u); other++) {
    if (other != label) { sum += multi_margin_slope(scores, other, own); }
  }
  return -sum * factor;
}

// multilabel_margin_loss: the targets of a sample end with the first that is negative.
fn is_end(target_class: vec2<u32>) -> bool { return target_class.y >= 0x80000000u; }

fn is_among(targets: u32, wanted: u32) -> bool {
  for (var t = 0u; t < x(0u); t++) {
    let target_class = load3(targets + t * x(3u));
    if (is_end(target_class)) { return false; }
    if (target_class.x == wanted) { return true; }
  }
  return false;
}

fn multilabel_margin(scores: u32, marks: u32, targets: u32) -> f32 {
  var sum = 0.0;
  for (var t = 0u; t < x(0u); t++) {
    let target_class = load3(targets + t * x(3u));
    if (is_end(target_class)) { break; }
    let label = resolve(target_class, x(0u), 1u);
    if (label == NONE) { break; }
    let own = score(scores, label);
    for (var other = 0u; other < x(0u); other++) {
      let z = 1.0 - own + score(scores, other);
      if (load2(marks + other * x(2u)) == 0.0 && z > 0.0) { sum += z; }
    }
  }
  return sum / f32(x(0u));
}

fn multilabel_margin_gradient(scores: u32, marks: u32, targets: u32, own_class: u32) -> f32 {
  let is_target = load2(marks + own_class * x(2u)) != 0.0;
  var count = 0u;
  for (var t = 0u; t < x(0u); t++) {
    let target_class = load3(targets + t * x(3u));
    if (is_end(target_class)) { break; }
    let label = resolve(target_class, x(0u), 1u);
    if (label == NONE || (is_target && label != own_class)) { continue; }
    let own = score(scores, label);
    if (!is_target) {
      count += u32(1.0 - own + score(scores, own_class) > 0.0);
      continue;
    }
    for (var other = 0u; other < x(0u); other++) {
      count += u32(load2(marks + other * x(2u)) == 0.0 && 1.0 - own + score(scores, other) > 0.0);
    }
  }
  let slope = f32(count) / f32(x(0u));
  return select(slope, -slope, is_target);
}
