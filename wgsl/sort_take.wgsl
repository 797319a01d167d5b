// The elements from `first` on of each sorted line, `taken` of them, and where in the line they were.
fn run(task: u32) {
  let line = task / taken();
  let i = task % taken();
  let from_place = load_order(line * length() + first() + i);
  let index = from_place - line * length();
  let outer = line / inner();
  let column = line % inner();
  let place = (outer * taken() + i) * inner() + column;
  store_values(place, load_input((outer * length() + index) * inner() + column));
  store_indices(place, index);
}
