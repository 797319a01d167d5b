// needs: ctc_labels
// The loss's gradient by the scores of one time step of one element. The paths that are at a label now, forward and
// backward, both contain its score.
fn run(task: u32, lane: u32) {
  let time = task / batch();
  let element = task % batch();
  let own_states = load_lengths(element * 3u + 1u) * 2u + 1u;
  let scores = score_place(element, time);
  let loss = load_loss(element);
  let is_out = time >= load_lengths(element * 3u) || (zero_infinity() != 0u && is_inf_f32(loss));
  let factor = load_gradient(element);
  for (var class_ = lane; class_ < classes(); class_ += WORKGROUP) {
    store_result(scores + class_, select(exp_f32(load_scores(scores + class_)) * factor, 0.0, is_out));
  }
  storageBarrier();
  if (is_out) { return; }
  for (var state = lane; state < own_states; state += WORKGROUP) {
    let own = label(element, state);
    var is_first = true;  // the lane of a label's first state sums over all of them
    for (var other = 0u; other < state && is_first; other++) { is_first = label(element, other) != own; }
    if (!is_first) { continue; }
    var sum = lowest_f32();
    for (var other = state; other < own_states; other++) {
      let place = path_place(element, time, other);
      if (label(element, other) == own) { sum = log_sum(sum, load_forward(place) + load_backward(place)); }
    }
    let score = load_scores(scores + own);
    store_result(scores + own, (exp_f32(score) - exp_f32(sum + loss - score)) * factor);
  }
}
