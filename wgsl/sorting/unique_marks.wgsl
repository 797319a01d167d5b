// 1 where a row differs from the one before it in the given order, and for the first.
fn run(task: u32) {
  var differs = task == 0u;
  if (!differs) {
    var here = task;
    var before = task - 1u;
    if (ORDERED) {
      here = load_order(task);
      before = load_order(task - 1u);
    }
    for (var i = 0u; i < width() && !differs; i++) {
      differs = different(load_input(here * width() + i), load_input(before * width() + i));
    }
  }
  store_marks(task, u32(differs));
}
