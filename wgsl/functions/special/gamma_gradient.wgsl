// loops: takes long to compile
// needs: gamma transcendental
// How samples move with their distribution's parameters: -(d cdf / d alpha) / pdf, for the gamma and the beta
// distribution. Series near the ends, saddle points for large parameters and fits between; the fits are PyTorch's.

fn gamma_gradient(alpha: f32, x: f32) -> f32 {
  if (x < 0.8) {
    var term = 1.0;
    var series = 1.0 / alpha;
    var slope = series * series;
    for (var i = 1u; i <= 5u; i++) {
      term *= -x / f32(i);
      let r = 1.0 / (alpha + f32(i));
      series += term * r;
      slope += term * r * r;
    }
    let result = -((log_f32(x) - special_digamma(alpha)) * series - slope) * x * exp_f32(x);
    return select(result, 0.0, is_nan_f32(result));
  }
  if (alpha > 8.0) {
    if (0.9 * alpha <= x && x <= 1.1 * alpha) {
      let ratio = x / alpha;
      let r = 1.0 / alpha;
      let left = r * r + 24.0 * (r + 12.0);
      let right = 1440.0 + 6.0 * ratio * (53.0 * r - 120.0 * ratio) + (107.0 * r + 3600.0 * ratio) - 65.0 * ratio * ratio * r;
      return left * right / 1244160.0;
    }
    let distance = (x - alpha) / alpha;
    let logarithm = log1p_f32(distance);
    let denominator = sqrt(8.0 * alpha);
    let second = -denominator / (x - alpha);
    let depth = alpha * (distance - logarithm);
    let third = 1.0 / (depth * sqrt(depth));
    let both = select(second + third, second - third, x < alpha);
    let first = logarithm * both - sqrt(2.0 / alpha) * (alpha + x) / ((alpha - x) * (alpha - x));
    let stirling = 1.0 + 1.0 / (12.0 * alpha) * (1.0 + 1.0 / (24.0 * alpha));
    return -stirling * x * first / denominator;
  }
  let u = log_f32(x / alpha);
  let v = log_f32(alpha);
  let p = vec4<f32>(0.16009398, -0.094634809, 0.025146376, -0.0030648343) +
      u * (vec4<f32>(0.53487893, 0.1298071, 0.065735949, -0.0015649758) +
           u * vec4<f32>(0.040121004, -0.0065914022, -0.0026286047, -0.0013441777));
  let q = vec4<f32>(1.0, 0.32668115, 0.10406089, 0.0014179084) +
      u * (vec4<f32>(0.16639465, 0.020070113, -0.0035938915, -0.00058392623) +
           u * vec4<f32>(0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-7));
  let powers = vec4<f32>(1.0, v, v * v, v * v * v);
  return exp_f32(dot(p, powers) / dot(q, powers));
}

fn beta_gradient_near_zero(x: f32, alpha: f32, beta: f32) -> f32 {
  let factor = special_digamma(alpha) - special_digamma(alpha + beta) - log_f32(x);
  var term = 1.0;
  var series = (factor + 1.0 / alpha) / alpha;
  for (var i = 1u; i <= 10u; i++) {
    let k = f32(i);
    term *= (k - beta) * x / k;
    let r = 1.0 / (alpha + k);
    series += term * r * (factor + r);
  }
  let result = x * pow_f32(1.0 - x, -beta) * series;
  return select(result, 0.0, is_nan_f32(result));
}

// By the other parameter.
fn beta_gradient_near_one(x: f32, alpha: f32, beta: f32) -> f32 {
  let factor = special_digamma(alpha + beta) - special_digamma(beta);
  var term = 1.0;
  var product = 1.0;
  var slope = 0.0;
  var series = factor / alpha;
  for (var i = 1u; i <= 8u; i++) {
    let k = f32(i);
    term *= -x / k;
    slope = slope * (beta - k) + product;
    product *= beta - k;
    series += term / (alpha + k) * (slope + factor * product);
  }
  let result = -pow_f32(1.0 - x, 1.0 - beta) * series;
  return select(result, 0.0, is_nan_f32(result));
}

fn stirling_factor(x: f32) -> f32 { return 1.0 + 1.0 / (12.0 * x) * (1.0 + 1.0 / (24.0 * x)); }

// Parameters as parts of their total, so that powers of large ones do not overflow.
fn beta_gradient_large(x: f32, alpha: f32, beta: f32) -> f32 {
  let total = alpha + beta;
  let r = 1.0 / total;
  let a = alpha * r;
  let b = beta * r;
  let deviation = sqrt(a * b / (total + 1.0));
  if (a - 0.1 * deviation <= x && x <= a + 0.1 * deviation) {
    let inner = 8.0 * (1.0 - x) * (135.0 * b - 11.0 * r);
    let fourth = (453.0 * r + 1620.0 * b * (1.0 - x) - 455.0 * x * r) * b + a * inner;
    let third = 3.0 * (59.0 * r + 180.0 * b - 90.0 * x * r) * b * b + a * fourth;
    let second = (43.0 * r + 20.0 * (16.0 * r + 27.0 * b) * x) * b * b * b + a * third;
    let polynomial = 47.0 * x * b * b * b * b * r + a * second;
    let factor = (r + 12.0 * a) * (r + 12.0 * b);
    return factor / (1.0 - x) * polynomial / (12960.0 * a * a * a * b * b * (r + 12.0)) * r;
  }
  let distance = x - a;  // of the mean, with total * distance = alpha * (x - 1) + beta * x
  let first = (2.0 * a * a * (x - 1.0) + a * b * (x - 1.0) - x * b * b) /
      (sqrt(2.0 * a / b) * total * sqrt(total) * distance * distance);
  let by_x = log1p_f32(distance / a);
  let third = sqrt(8.0 * a * b * r) / distance;
  let depth = -total * (b * log1p_f32(-distance / b) + a * by_x);
  let fourth = 1.0 / (depth * sqrt(depth));
  let sum = first - 0.5 * by_x * (third + select(-fourth, fourth, distance < 0.0));
  let stirling = stirling_factor(alpha) * stirling_factor(beta) / stirling_factor(total);
  return -stirling * x / sqrt(2.0 * alpha * b) * sum;
}

// Four coefficients of a polynomial in b, for powers 0 to 2 of u and of a.
fn fitted(u: f32, a: f32, b: f32, c: array<vec4<f32>, 9>) -> f32 {
  let rows0 = c[0] + a * (c[1] + a * c[2]);
  let rows1 = c[3] + a * (c[4] + a * c[5]);
  let rows2 = c[6] + a * (c[7] + a * c[8]);
  return dot(rows0 + u * (rows1 + u * rows2), vec4<f32>(1.0, b, b * b, b * b * b));
}

// Divided by 1 - x, for the gradient of a Dirichlet distribution whose parameters have the sum `total`.
fn dirichlet_gradient(x: f32, alpha: f32, total: f32) -> f32 {
  let beta = total - alpha;
  let boundary = total * x * (1.0 - x);
  if (x <= 0.5 && boundary < 2.5) { return beta_gradient_near_zero(x, alpha, beta); }
  if (x >= 0.5 && boundary < 0.75) { return -beta_gradient_near_one(1.0 - x, beta, alpha); }
  if (alpha > 6.0 && beta > 6.0) { return beta_gradient_large(x, alpha, beta); }
  let u = log_f32(x);
  let a = log_f32(alpha) - u;
  let b = log_f32(total) - a;
  let p = fitted(u, a, b, array<vec4<f32>, 9>(
      vec4<f32>(1.003668233, -0.01061107488, -0.0657888334, 0.01201642863),
      vec4<f32>(0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
      vec4<f32>(-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013),
      vec4<f32>(0.221950385, -0.3187676331, 0.01799915743, 0.01074823814),
      vec4<f32>(-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
      vec4<f32>(0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-5),
      vec4<f32>(-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
      vec4<f32>(0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181),
      vec4<f32>(0.005900514878, -0.001936558688, -9.495446725e-6, 5.385558597e-5)));
  let q = fitted(u, a, b, array<vec4<f32>, 9>(
      vec4<f32>(1.0, -0.02924021934, -0.04438342661, 0.007285809825),
      vec4<f32>(0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
      vec4<f32>(-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149),
      vec4<f32>(0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273),
      vec4<f32>(0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
      vec4<f32>(-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-5),
      vec4<f32>(0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-5),
      vec4<f32>(0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-5),
      vec4<f32>(-0.0003477407336, 6.959756487e-5, 1.097287507e-5, -1.650964693e-6)));
  return p / q * (x * (special_digamma(total) - special_digamma(alpha)) / beta);
}
