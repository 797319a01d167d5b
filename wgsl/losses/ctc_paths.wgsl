// needs: ctc_labels
// The logarithms of the probabilities of all paths that begin at the start of an element's time and are at a state now;
// in the variant REVERSED of those that go on to the end.
const REVERSED = VARIANT == 1u;

fn run(task: u32, lane: u32) {
  let own_steps = load_lengths(task * 3u);
  let own_states = load_lengths(task * 3u + 1u) * 2u + 1u;
  let back = select(-1, 1, REVERSED);  // to the state that a path comes from
  for (var i = 0u; i < steps(); i++) {  // all of them: a barrier must be reached by all lanes, whatever was loaded
    let time = select(i, own_steps - 1u - i, REVERSED);
    let beyond = select(0u, own_states, i < own_steps);
    for (var state = lane; state < beyond; state += WORKGROUP) {
      let passed = select(state, own_states - 1u - state, REVERSED);
      let own = label(task, state);
      var value = select(lowest_f32(), 0.0, i == 0u && passed < 2u);
      if (i > 0u) {
        let before = path_place(task, u32(i32(time) + back), state);
        value = load_paths(before);
        if (passed >= 1u) { value = log_sum(value, load_paths(u32(i32(before) + back))); }
        if (passed >= 2u && label(task, u32(i32(state) + 2 * back)) != own) {
          value = log_sum(value, load_paths(u32(i32(before) + 2 * back)));
        }
      }
      store_paths(path_place(task, time, state), value + load_scores(score_place(task, time) + own));
    }
    storageBarrier();
  }
  if (REVERSED || lane != 0u) { return; }
  var likelihood = select(lowest_f32(), 0.0, own_states == 1u);
  if (own_steps > 0u) {
    let last = path_place(task, own_steps - 1u, own_states - 1u);
    likelihood = load_paths(last);
    if (own_states > 1u) { likelihood = log_sum(likelihood, load_paths(last - 1u)); }
  }
  store_loss(task, -likelihood);
}
