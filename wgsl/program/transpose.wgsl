// needs: transpose_places
// Copies tiles of a matrix whose columns lie along memory into one whose rows do, through workgroup memory, so that lanes
// read and write neighbours. `column` counts along the result's memory, `row` along the input's.
const SIDE = 32u;
const STEP = WORKGROUP / SIDE;  // lines of a tile that are under way at once, times eight
var<workgroup> tile: array<array<T, 33>, SIDE>;  // [column][row], padded by one: both sides read other banks

fn run(task: u32, lane: u32) {
  let across = (columns() + SIDE - 1u) / SIDE;
  let down = (rows() + SIDE - 1u) / SIDE;
  let first_column = task % across * SIDE;
  let first_row = task / across % down * SIDE;
  let batch = task / across / down;
  let x = lane % SIDE;
  let y = lane / SIDE;
  let row = first_row + x;
  let begin = batch_place(batch, input_inner(), input_outer()) + min(row, rows() - 1u);
  let last = columns() - 1u;
  for (var n = y; n < SIDE; n += 8u * STEP) {
    let line = first_column + n;
    let a = load_input(begin + min(line, last) * input_step());
    let b = load_input(begin + min(line + STEP, last) * input_step());
    let c = load_input(begin + min(line + 2u * STEP, last) * input_step());
    let d = load_input(begin + min(line + 3u * STEP, last) * input_step());
    let e = load_input(begin + min(line + 4u * STEP, last) * input_step());
    let f = load_input(begin + min(line + 5u * STEP, last) * input_step());
    let g = load_input(begin + min(line + 6u * STEP, last) * input_step());
    let h = load_input(begin + min(line + 7u * STEP, last) * input_step());
    tile[n][x] = a;
    tile[n + STEP][x] = b;
    tile[n + 2u * STEP][x] = c;
    tile[n + 3u * STEP][x] = d;
    tile[n + 4u * STEP][x] = e;
    tile[n + 5u * STEP][x] = f;
    tile[n + 6u * STEP][x] = g;
    tile[n + 7u * STEP][x] = h;
  }
  workgroupBarrier();
  let column = first_column + x;
  let place = batch_place(batch, output_inner(), output_outer()) + column;
  for (var n = y; n < SIDE; n += STEP) {
    if (column < columns() && first_row + n < rows()) {
      store_output(place + (first_row + n) * output_step(), tile[x][n]);
    }
  }
}
