// Counts per digit and thread become places: first along each digit's row, then over the rows' totals, kept behind them.
const DIGITS = 256u;

fn scan_row(digit: u32) {
  var sum = 0u;
  for (var thread = 0u; thread < x(3u); thread++) {
    let at = digit * x(3u) + thread;
    let count = load0(at);
    store(at, sum);
    sum += count;
  }
  store(DIGITS * x(3u) + digit, sum);
}

fn scan_totals() {
  var sum = 0u;
  for (var digit = 0u; digit < DIGITS; digit++) {
    let at = DIGITS * x(3u) + digit;
    let count = load0(at);
    store(at, sum);
    sum += count;
  }
}
