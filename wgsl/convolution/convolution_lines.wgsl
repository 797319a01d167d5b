// A tile of ROWS channels of the output, 8 or 16, by eight neighbours of a line per lane. For each line of the window and
// channel of x, a lane loads the elements that its pixels see once, for all taps of the line.
const SPAN = 8u;
const OWN = SPAN * STEP;  // elements of x that lie at a lane's own pixels
const SEEN = max((SPAN - 1u) * STEP + WIDTH, BEFORE + OWN);
const QUADS = ROWS / 4u;
const LOADS = (WIDTH * QUADS + 7u) / 8u;

alias Seen = array<f32, SEEN>;
alias Taps = array<vec4<f32>, LOADS>;
alias Sums = array<array<vec4<f32>, 2>, ROWS>;

// Four rows, whose weights all lanes get from the one that loaded them: each sum takes the taps of a line at once.
fn add_quad(sums: ptr<function, Sums>, taps: Taps, quad: u32, x: Seen) {
  var weights = array<vec4<f32>, WIDTH>();
  for (var t = 0u; t < WIDTH; t++) {
    weights[t] = subgroupShuffle(taps[(t * QUADS + quad) / 8u], (t * QUADS + quad) % 8u);
  }
  for (var i = 0u; i < 4u; i++) {
    var left = (*sums)[4u * quad + i][0];
    var right = (*sums)[4u * quad + i][1];
    for (var t = 0u; t < WIDTH; t++) {
      let weight = vec4<f32>(weights[t][i]);
      let next = t + 4u * STEP;
      left = fma(weight, vec4<f32>(x[t], x[t + STEP], x[t + 2u * STEP], x[t + 3u * STEP]), left);
      right = fma(weight, vec4<f32>(x[next], x[next + STEP], x[next + 2u * STEP], x[next + 3u * STEP]), right);
    }
    (*sums)[4u * quad + i][0] = left;
    (*sums)[4u * quad + i][1] = right;
  }
}

// A transposed convolution walks its taps backwards.
fn is_turned() -> bool { return dilation().z < 0; }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  let end = min((group.x + 1u) * chunk(), tiles());
  for (var task = group.x * chunk(); task < end; task++) {
    let row = task / column_tiles() % row_tiles() * ROWS;
    let weight_group = task / column_tiles() / row_tiles();
    let block = task % column_tiles() * WORKGROUP + lane;
    let line_blocks = (out_size().z + SPAN - 1u) / SPAN;
    let line = block / line_blocks;
    let plane = line / out_size().y;
    let image = plane / out_size().x;
    let place = vec3<u32>(plane % out_size().x, line % out_size().y, block % line_blocks * SPAN);

    // Places before the first wrap to large numbers.
    var first = place * step() + vec3<u32>(base());
    if (is_turned()) { first.z -= WIDTH - 1u; }
    let x_at = x_first() + image * x_image() + weight_group * channels() * x_channel() + first.z * x_stride().z;
    let lines = kernel().x * kernel().y;
    let quads = (rows() + 3u) / 4u;
    let weight_at = weight_group * lines * WIDTH * channels() * quads;
    var tap_at = array<u32, LOADS>();
    for (var n = 0u; n < LOADS; n++) {
      let tap = min((8u * n + lane) / QUADS, WIDTH - 1u);
      tap_at[n] = select(tap, WIDTH - 1u - tap, is_turned()) * channels() * quads +
          min(row / 4u + (8u * n + lane) % QUADS, quads - 1u);
    }

    var sums = Sums();
    for (var k = 0u; k < lines; k++) {
      let at = first.xy + vec2<u32>(vec2<i32>(vec2<u32>(k / kernel().y, k % kernel().y)) * dilation().xy);
      let is_line = block < columns() && at.x < x_size().x && at.y < x_size().y;
      var source = x_at + at.x * x_stride().x + at.y * x_stride().y;
      var weights = weight_at + k * WIDTH * channels() * quads;
      for (var channel = 0u; channel < channels(); channel++) {
        let x = load_seen(source, first.z, is_line);
        var taps = Taps();
        for (var n = 0u; n < LOADS; n++) { taps[n] = load_weight(weights + tap_at[n]); }
        add_quad(&sums, taps, 0u, x);
        add_quad(&sums, taps, 1u, x);
        if (ROWS > 8u) {
          add_quad(&sums, taps, 2u, x);
          add_quad(&sums, taps, 3u, x);
        }
        source += x_channel();
        weights += quads;
      }
    }

    if (block >= columns()) { continue; }
    let out_at = image * out_image() + dot(place, out_stride());
    for (var i = 0u; i < min(ROWS, rows() - row); i++) {
      let channel = weight_group * rows() + row + i;
      let at = out_at + channel * out_channel();
      store_span(at, place.z, sums[i][0] + load_bias(channel), sums[i][1] + load_bias(channel));
    }
  }
}
