// Counts of the pieces become the places where they begin, and the total behind them.
fn scan_pieces() {
  var sum = 0u;
  for (var thread = 0u; thread < x(3u); thread++) {
    let count = load0(thread);
    store(thread, sum);
    sum += count;
  }
  store(x(3u), sum);
}
