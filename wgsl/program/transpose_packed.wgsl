// needs: transpose_places
// The same for elements of which a word holds several: lanes take whole words on both sides, so that no two lanes store to
// one, and turn square blocks of elements around in between. Steps and places of memory count words.
const PER = VARIANT;  // elements of a word
const BITS = 32u / PER;
const MASK = (1u << BITS) - 1u;
const SIDE = 64u;
const WIDE = SIDE / PER;
const STEP = WORKGROUP / WIDE;  // lines of a tile that are under way at once, times eight
var<workgroup> tile: array<array<u32, WIDE + 1u>, SIDE>;  // [column][word of rows]

fn run(task: u32, lane: u32) {
  let across = (columns() + SIDE - 1u) / SIDE;
  let down = (rows() + SIDE - 1u) / SIDE;
  let first_column = task % across * SIDE;
  let first_row = task / across % down * SIDE;
  let batch = task / across / down;
  let x = lane % WIDE;
  let y = lane / WIDE;
  let begin = batch_place(batch, input_inner(), input_outer()) + min(first_row / PER + x, (rows() - 1u) / PER);
  let last = columns() - 1u;
  for (var n = y; n < SIDE; n += 8u * STEP) {
    var words: array<u32, 8>;
    for (var turn = 0u; turn < 8u; turn++) {
      words[turn] = load_input(begin + min(first_column + n + turn * STEP, last) * input_step());
    }
    for (var turn = 0u; turn < 8u; turn++) { tile[n + turn * STEP][x] = words[turn]; }
  }
  workgroupBarrier();
  let column = first_column + x * PER;
  if (column >= columns()) { return; }
  let place = batch_place(batch, output_inner(), output_outer()) + column / PER;
  for (var n = y; n < WIDE; n += STEP) {
    var block: array<u32, PER>;
    for (var i = 0u; i < PER; i++) { block[i] = tile[x * PER + i][n]; }
    for (var j = 0u; j < PER; j++) {
      let row = first_row + n * PER + j;
      if (row >= rows()) { break; }
      var word = 0u;
      for (var i = 0u; i < PER; i++) { word |= ((block[i] >> (j * BITS)) & MASK) << (i * BITS); }
      let at = place + row * output_step();
      if (column + PER > columns()) {  // what lies behind the row is another tensor's
        let own = (1u << ((columns() - column) * BITS)) - 1u;
        word = (word & own) | (load_output(at) & ~own);
      }
      store_output(at, word);
    }
  }
}
