// needs: random philox
// Distributions whose samples take a varying number of random words: candidates are drawn until one is accepted. As in
// random.wgsl, bits must not depend on the adapter.
const ATTEMPTS = 1000u;  // so that no argument makes a kernel run for ever; hardly any sample needs 20

// In [0, 1).
fn unit_of(bits: u32) -> f32 { return f32(bits >> 8u) * 5.9604645e-8; }

// Of a positive normal number.
fn random_log(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let halve = (bits & 0x7fffffu) > 0x3504f3u;
  let e = i32(bits >> 23u) - select(127, 126, halve);
  let f = bitcast<f32>((bits & 0x7fffffu) | select(0x3f800000u, 0x3f000000u, halve)) - 1.0;
  return mul_then_add(f32(e), 0.69314718, random_log_near_one(f));
}

// log(1 + t).
fn random_log1p(t: f32) -> f32 {
  if (t > -0.29 && t < 0.41) { return random_log_near_one(t); }
  return random_log(1.0 + t);
}

// Marsaglia and Tsang's method: d * (1 + c * normal)^3. Below 1, a sample of alpha + 1 times a power of a uniform one.
fn random_gamma(alpha: f32, index: u32, first: vec4<u32>) -> f32 {
  if (!(alpha >= 0.0) || is_nan_f32(alpha)) { return nan_f32(); }
  if (alpha == 0.0) { return 0.0; }
  var scale = 1.0;
  var d = alpha - 0.33333334;
  if (alpha < 1.0) {
    if (alpha < 1e-30) { return 1.1754944e-38; }
    scale = random_exp(-rounded(random_exponential(first.w) * random_reciprocal(alpha)));
    d = alpha + 0.6666667;
  }
  let c = random_reciprocal(random_sqrt(rounded(9.0 * d)));
  var words = first;
  for (var attempt = 1u; attempt < ATTEMPTS; attempt++) {
    let x = random_normal(words, 0u);
    let t = rounded(c * x);
    if (t > -1.0) {
      let root = 1.0 + t;
      let cube = rounded(rounded(root * root) * root);
      // 1 - cube + log(cube), without the digits that cancel.
      let bound = rounded(3.0 * (random_log1p(t) - t)) - rounded(rounded(t * t) * (3.0 + t));
      if (-random_exponential(words.z) < rounded(0.5 * rounded(x * x)) + rounded(d * bound)) {
        return max(rounded(rounded(d * cube) * scale), 1.1754944e-38);
      }
    }
    words = random_attempt(index, attempt);
  }
  return rounded(d * scale);
}

// What Stirling's formula lacks of log(k!).
fn stirling_rest(k: f32) -> f32 {
  if (k < 0.5) { return 0.0; }
  let r = random_reciprocal(k);
  return rounded(r * mul_then_add(rounded(r * r), mul_then_add(rounded(r * r), 7.9365079e-4, -2.7777778e-3), 0.083333333));
}

// k * log(k / mean) + mean - k, without the digits that cancel near the mean; k is not zero.
fn deviance(k: f32, mean: f32) -> f32 {
  let t = rounded((mean - k) * random_reciprocal(k));
  return rounded(k * (t - random_log1p(t)));
}

// The logarithm of the probability of k events where `mean` are expected.
fn poisson_log(k: f32, mean: f32) -> f32 {
  if (k < 0.5) { return -mean; }
  return -deviance(k, mean) - rounded(0.5 * random_log(rounded(6.2831853 * k))) - stirling_rest(k);
}

// Hoermann's transformed rejection: a candidate for a mean and a standard deviation, and what it is weighed with.
struct Candidate {
  k: f32,
  near: bool,  // accepted without more ado
  weight: f32,
}
fn candidate(words: vec4<u32>, a: f32, b: f32, centre: f32, certain: f32) -> Candidate {
  let u = unit_of(words.x) - 0.5;
  let v = 1.0 - unit_of(words.y);
  let us = max(0.5 - abs(u), 5.9604645e-8);
  let r = random_reciprocal(us);
  let slope = mul_then_add(rounded(2.0 * a), r, b);
  let k = floor(mul_then_add(slope, u, centre));
  let weight = rounded(v * random_reciprocal(mul_then_add(a, rounded(r * r), b)));
  return Candidate(k, us >= 0.07 && v <= certain, weight);
}

fn random_poisson(rate: f32, index: u32, first: vec4<u32>) -> f32 {
  if (!(rate >= 0.0) || is_nan_f32(rate)) { return nan_f32(); }
  if (rate == 0.0) { return 0.0; }
  var words = first;
  if (rate < 10.0) {  // events that happen before the time is over
    var time = 0.0;
    for (var events = 0u; events < ATTEMPTS; events++) {
      if (events > 0u && events % 4u == 0u) { words = random_attempt(index, events / 4u); }
      time += random_exponential(words[events % 4u]);
      if (time > rate) { return f32(events); }
    }
  }
  let b = mul_then_add(2.53, random_sqrt(rate), 0.931);
  let a = mul_then_add(0.02483, b, -0.059);
  let inverse = mul_then_add(1.1328, random_reciprocal(b - 3.4), 1.1239);
  let certain = 0.9277 - rounded(3.6224 * random_reciprocal(b - 2.0));
  for (var attempt = 1u; attempt < ATTEMPTS; attempt++) {
    let c = candidate(words, a, b, rate + 0.43, certain);
    if (c.k >= 0.0) {
      if (c.near) { return c.k; }
      if (random_log(rounded(c.weight * inverse)) <= poisson_log(c.k, rate)) { return c.k; }
    }
    words = random_attempt(index, attempt);
  }
  return floor(rate);
}

// The logarithm of the probability of k successes, up to a constant.
fn binomial_log(k: f32, n: f32, p: f32) -> f32 {
  if (k < 0.5) { return rounded(n * random_log1p(-p)); }
  if (n - k < 0.5) { return rounded(n * random_log(p)); }
  let rest = n - k;
  let spread = rounded(rounded(k * rest) * rounded(6.2831853 * random_reciprocal(n)));
  return stirling_rest(n) - stirling_rest(k) - stirling_rest(rest) - deviance(k, rounded(n * p)) -
      deviance(rest, rounded(n * (1.0 - p))) - rounded(0.5 * random_log(spread));
}

// p is at most a half.
fn random_successes(n: f32, p: f32, index: u32, first: vec4<u32>) -> f32 {
  var words = first;
  let mean = rounded(n * p);
  if (mean < 10.0) {  // the lengths of failures in a row are geometric
    let per_trial = random_reciprocal(-random_log1p(-p));
    var trials = 0.0;
    for (var successes = 0u; successes < ATTEMPTS; successes++) {
      if (successes > 0u && successes % 4u == 0u) { words = random_attempt(index, successes / 4u); }
      trials += ceil(rounded(random_exponential(words[successes % 4u]) * per_trial));
      if (trials > n) { return f32(successes); }
    }
  }
  let deviation = random_sqrt(rounded(mean * (1.0 - p)));
  let b = mul_then_add(2.53, deviation, 1.15);
  let a = mul_then_add(0.01, p, mul_then_add(0.0248, b, -0.0873));
  let inverse = random_reciprocal(b);
  let alpha = rounded(mul_then_add(5.1, inverse, 2.83) * deviation);
  let certain = 0.92 - rounded(4.2 * inverse);
  let most_likely = binomial_log(floor(rounded((n + 1.0) * p)), n, p);
  for (var attempt = 1u; attempt < ATTEMPTS; attempt++) {
    let c = candidate(words, a, b, mean + 0.5, certain);
    if (c.k >= 0.0 && c.k <= n) {
      if (c.near) { return c.k; }
      if (random_log(rounded(c.weight * alpha)) <= binomial_log(c.k, n, p) - most_likely) { return c.k; }
    }
    words = random_attempt(index, attempt);
  }
  return floor(mean);
}

fn random_binomial(n: f32, p: f32, index: u32, block: vec4<u32>) -> f32 {
  if (is_nan_f32(n) || is_nan_f32(p)) { return nan_f32(); }
  if (n <= 0.0 || p <= 0.0) { return 0.0; }
  if (p >= 1.0) { return n; }
  if (p < 1e-30) { return 0.0; }
  if (p <= 0.5) { return random_successes(n, p, index, block); }
  return n - random_successes(n, 1.0 - p, index, block);
}
