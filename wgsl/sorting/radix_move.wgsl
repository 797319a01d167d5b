// Each thread moves its pairs to their places, in order; its column of the table says where the next one goes.
const DIGITS = 256u;

fn move_pairs(thread: u32) {
  let end = min((thread + 1u) * x(1u), x(0u));
  for (var k = thread * x(1u); k < end; k++) {
    let pair = load1(k);
    let digit = (pair.x >> x(2u)) & (DIGITS - 1u);
    let counter = digit * x(3u) + thread;
    let count = load2(counter);
    let place = load2(DIGITS * x(3u) + digit) + count;
    set2(counter, count + 1u);
    store(place, pair);
  }
}
