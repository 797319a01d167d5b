// Tiles of attention. Eight lanes hold a tile of rows by 32 columns, each lane four columns, eight apart; rows are queries
// and columns keys, or the other way round. How lanes exchange is in attention_subgroup and attention_group.
alias Tile = array<vec4<f32>, ROWS>;
alias Numbers = array<f32, ROWS>;
alias Indices = array<u32, ROWS>;
alias Places = array<u32, LOADS>;
alias Queries = array<Query, ROWS>;
alias Sums = array<array<vec4<f32>, COLUMNS>, ROWS>;  // a lane has every eighth quad of a row

const FEW = BLOCK <= 4u;  // rows, so that loading the other operand is most of the work

fn quad_of(i: u32, local: u32) -> u32 { return local % 8u + 8u * i; }

// tile += rows of a by columns of b: a_at has the places of the rows that this lane loads, b_at those of its columns.
fn product(tile: ptr<function, Tile>, a: u32, a_at: Places, b: u32, b_at: vec4<u32>, quads: u32) {
  for (var i = 0u; i < quads; i++) {
    var mine = array<vec4<f32>, LOADS>();
    for (var n = 0u; n < LOADS; n++) { mine[n] = load(a, a_at[n], i); }
    let b0 = load(b, b_at.x, i);
    let b1 = load(b, b_at.y, i);
    let b2 = load(b, b_at.z, i);
    let b3 = load(b, b_at.w, i);
    let x = vec4<f32>(b0.x, b1.x, b2.x, b3.x);
    let y = vec4<f32>(b0.y, b1.y, b2.y, b3.y);
    let z = vec4<f32>(b0.z, b1.z, b2.z, b3.z);
    let w = vec4<f32>(b0.w, b1.w, b2.w, b3.w);
    for (var r = 0u; r < ROWS; r++) {
      let v = share_row(mine, r);
      (*tile)[r] = fma(vec4<f32>(v.w), w,
          fma(vec4<f32>(v.z), z, fma(vec4<f32>(v.y), y, fma(vec4<f32>(v.x), x, (*tile)[r]))));
    }
  }
}

// The same for few rows of a, which lie in registers as sums do, and the rows of b one after another, each spread over the
// lanes. `column` is the tile's first.
fn product_each(tile: ptr<function, Tile>, a: ptr<function, Sums>, b: u32, at: u32, column: u32, end: u32, quads: u32,
    local: u32) {
  for (var n = column; n < end; n++) {
    var v = array<vec4<f32>, COLUMNS>();
    for (var i = 0u; i < COLUMNS; i++) {
      v[i] = select(vec4<f32>(), load(b, at + n * row_stride(b), quad_of(i, local)), quad_of(i, local) < quads);
    }
    for (var r = 0u; r < ROWS; r++) {
      var x = 0.0;
      for (var i = 0u; i < COLUMNS; i++) { x += dot((*a)[r][i], v[i]); }
      x = row_sum(x, local);
      (*tile)[r] = select((*tile)[r], vec4<f32>(x), columns_of(column, local) == vec4<u32>(n));
    }
  }
}

// sums += the tile by `count` rows of b, whose first is at `at`.
fn accumulate(sums: ptr<function, Sums>, tile: ptr<function, Tile>, b: u32, at: u32, count: u32, local: u32) {
  publish(tile, local);
  let end = min(count, TILE);
  for (var first = 0u; first < end; first += 8u) {
    if (FEW) {
      accumulate_each(sums, tile, b, at, first, min(first + 8u, end), local);
    } else {
      accumulate_fours(sums, tile, b, at, first, end - 1u, local);
    }
  }
}

// A row at a time: where there are few sums the loads count, and a loop of few instructions is the fastest.
fn accumulate_each(sums: ptr<function, Sums>, tile: ptr<function, Tile>, b: u32, at: u32, first: u32, end: u32,
    local: u32) {
  for (var n = first; n < end; n++) {
    var v = array<vec4<f32>, COLUMNS>();
    for (var i = 0u; i < COLUMNS; i++) { v[i] = load(b, at + n * row_stride(b), quad_of(i, local)); }
    for (var r = 0u; r < ROWS; r++) {
      let y = vec4<f32>(published(tile, r, first / 8u, n % 8u, local));
      for (var i = 0u; i < COLUMNS; i++) { (*sums)[r][i] = fma(y, v[i], (*sums)[r][i]); }
    }
  }
}

// Four rows at a time, for each sum to take them at once.
fn accumulate_fours(sums: ptr<function, Sums>, tile: ptr<function, Tile>, b: u32, at: u32, first: u32, last: u32,
    local: u32) {
  for (var lane = 0u; lane < 8u; lane += 4u) {
    let place = at + min(first + lane + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last)) * row_stride(b);
    var v0 = array<vec4<f32>, COLUMNS>();
    var v1 = array<vec4<f32>, COLUMNS>();
    var v2 = array<vec4<f32>, COLUMNS>();
    var v3 = array<vec4<f32>, COLUMNS>();
    for (var i = 0u; i < COLUMNS; i++) {
      v0[i] = load(b, place.x, quad_of(i, local));
      v1[i] = load(b, place.y, quad_of(i, local));
      v2[i] = load(b, place.z, quad_of(i, local));
      v3[i] = load(b, place.w, quad_of(i, local));
    }
    for (var r = 0u; r < ROWS; r++) {
      let y0 = vec4<f32>(published(tile, r, first / 8u, lane, local));
      let y1 = vec4<f32>(published(tile, r, first / 8u, lane + 1u, local));
      let y2 = vec4<f32>(published(tile, r, first / 8u, lane + 2u, local));
      let y3 = vec4<f32>(published(tile, r, first / 8u, lane + 3u, local));
      for (var i = 0u; i < COLUMNS; i++) {
        (*sums)[r][i] = fma(y3, v3[i], fma(y2, v2[i], fma(y1, v1[i], fma(y0, v0[i], (*sums)[r][i]))));
      }
    }
  }
}

// Results are staged in workgroup memory, so that the work that follows each row is compiled once, not once per
// unrolled row.
var<workgroup> results: array<array<vec4<f32>, 8u * COLUMNS>, BLOCK>;

fn set_results(sums: ptr<function, Sums>, factors: Numbers, local: u32) {
  settle();
  for (var r = 0u; r < ROWS; r++) {
    for (var i = 0u; i < COLUMNS; i++) {
      results[row_in_block(local, r)][quad_of(i, local)] = (*sums)[r][i] * factors[r];
    }
  }
  settle();
}
