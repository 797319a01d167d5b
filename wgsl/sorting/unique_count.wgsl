// A group's size, from where it and the next begin.
fn run(task: u32) {
  var end = rows();
  if (task + 1u < tasks()) { end = load_starts(task + 1u); }
  store_counts(task, end - load_starts(task));
}
