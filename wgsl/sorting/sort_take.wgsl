// The elements from `first` on of each sorted line, `taken` of them, and where in the line they were. The order is of
// `width` candidates per line, which are all its elements or those chosen before.
const ORDERED = (VARIANT & 1u) != 0u;
const CHOSEN = (VARIANT & 2u) != 0u;

fn run(task: u32) {
  let line = task / taken();
  let i = task % taken();
  var candidate = line * width() + first() + i;
  if (ORDERED) { candidate = load_order(candidate); }
  var index = candidate - line * width();
  if (CHOSEN) { index = load_chosen(candidate); }
  let outer = line / inner();
  let column = line % inner();
  let place = (outer * taken() + i) * inner() + column;
  store_values(place, load_input((outer * length() + index) * inner() + column));
  store_indices(place, index);
}
