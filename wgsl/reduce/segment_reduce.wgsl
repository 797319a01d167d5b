// Reduces the elements of one segment, or spreads its gradient over them. Data are [outer, length, inner], segments
// [outer, segments, inner], and offsets [outer, segments + 1].
const REDUCTION = VARIANT & 7u;
const BACKWARD = (VARIANT & 8u) != 0u;
const HAS_INITIAL = (VARIANT & 16u) != 0u;
const MAX = 0u;
const MEAN = 1u;
const MIN = 2u;
const SUM = 3u;
const PROD = 4u;

fn start() -> f32 {
  if (HAS_INITIAL) { return bitcast<f32>(initial_bits()); }
  switch (REDUCTION) {
    case MAX: { return -inf_f32(); }
    case MIN: { return inf_f32(); }
    case PROD: { return 1.0; }
    default: { return 0.0; }
  }
}

fn join(a: f32, b: f32) -> f32 {
  switch (REDUCTION) {
    case MAX: { return max_f32(a, b); }
    case MIN: { return min_f32(a, b); }
    case PROD: { return a * b; }
    default: { return a + b; }
  }
}

fn run(task: u32) {
  let column = task % inner();
  let segment = task / inner() % segments();
  let outer = task / inner() / segments();
  let begin = min(load_offsets(outer * (segments() + 1u) + segment), length());
  let end = min(load_offsets(outer * (segments() + 1u) + segment + 1u), length());
  let base = outer * length() * inner() + column;
  if (BACKWARD) {
    spread(task, base, begin, end);
    return;
  }
  var total = start();
  for (var i = begin; i < end; i++) { total = join(total, load_data(base + i * inner())); }
  if (REDUCTION == MEAN) {
    if (end > begin) {
      total = total / f32(end - begin);
    } else if (!HAS_INITIAL) {
      total = nan_f32();
    }
  }
  store_result(task, total);
}

fn spread(task: u32, base: u32, begin: u32, end: u32) {
  let gradient = load_gradient(task);
  let total = load_output(task);
  var ties = 0u;
  if (REDUCTION == MAX || REDUCTION == MIN) {
    for (var i = begin; i < end; i++) {
      let value = load_data(base + i * inner());
      ties += u32(is_nan_f32(value) || value == total);
    }
  }
  for (var i = begin; i < end; i++) {
    let place = base + i * inner();
    let value = load_data(place);
    var result = gradient;
    switch (REDUCTION) {
      case MAX, MIN: {
        if (!(is_nan_f32(value) || value == total)) {
          result = 0.0;
        } else if (ties > 1u && gradient > 0.0) {
          result = gradient / f32(ties);  // the CPU shares positive gradients only
        }
      }
      case MEAN: { result = gradient / f32(end - begin); }
      case PROD: {
        if (value == 0.0 || is_nan_f32(value)) {
          var others = start();
          for (var j = begin; j < end; j++) {
            if (j != i) { others = others * load_data(base + j * inner()); }
          }
          result = gradient * others;
        } else {
          result = gradient * total / value;
        }
      }
      default: {}
    }
    store_result(place, result);
  }
}
