// Each row's group; the first row of a group is its value.
fn run(task: u32) {
  var row = task;
  if (ORDERED) { row = load_order(task); }
  let group = load_groups(task) - 1u;
  store_inverse(row, group);
  if (task > 0u && load_groups(task - 1u) == group + 1u) { return; }
  store_starts(group, task);
  for (var i = 0u; i < width(); i++) { store_values(group * width() + i, load_input(row * width() + i)); }
}
