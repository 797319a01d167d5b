// Lines that fit in workgroup memory: a bitonic sort by key and index, so that equal elements keep their order. The
// elements are all of the line or those chosen before.
const CHOSEN = (VARIANT & 8u) != 0u;
const SIZE = 1u << (VARIANT >> 8u);
const HIGH_SIZE = select(1u, SIZE, WORDS == 2u);
const NONE = 0xffffffffu;  // the index of what fills up a block: it goes last

var<workgroup> low: array<u32, SIZE>;
var<workgroup> high: array<u32, HIGH_SIZE>;
var<workgroup> index: array<u32, SIZE>;

fn pair_at(i: u32) -> vec2<u32> {
  if (WORDS == 1u) { return vec2<u32>(low[i], 0u); }
  return vec2<u32>(low[i], high[i]);
}

fn put(i: u32, words: vec2<u32>, own: u32) {
  low[i] = words.x;
  if (WORDS == 2u) { high[i] = words.y; }
  index[i] = own;
}

fn run(task: u32, lane: u32) {
  let base = task / inner() * (length() * inner()) + task % inner();
  for (var i = lane; i < SIZE; i += WORKGROUP) {
    var own = NONE;
    if (i < width()) {
      own = i;
      if (CHOSEN) { own = load_chosen(task * width() + i); }
    }
    var words = vec2<u32>(NONE);
    if (own != NONE) { words = ordered_key(load_input(base + own * inner())); }
    put(i, words, own);
  }
  workgroupBarrier();
  for (var sorted = 2u; sorted <= size(); sorted *= 2u) {
    for (var step = sorted / 2u; step > 0u; step /= 2u) {
      for (var pair = lane; pair < SIZE / 2u; pair += WORKGROUP) {
        let left = pair * 2u - (pair & (step - 1u));
        let right = left + step;
        let a = pair_at(left);
        let b = pair_at(right);
        let swaps = goes_before(b, a) || (all(a == b) && index[right] < index[left]);
        if (swaps == ((left & sorted) == 0u)) {
          let own = index[left];
          put(left, b, index[right]);
          put(right, a, own);
        }
      }
      workgroupBarrier();
    }
  }
  for (var i = lane; i < taken(); i += WORKGROUP) {
    let own = index[first() + i];
    let place = (task / inner() * taken() + i) * inner() + task % inner();
    store_values(place, load_input(base + own * inner()));
    store_indices(place, own);
  }
}
