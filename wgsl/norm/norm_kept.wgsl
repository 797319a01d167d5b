// A subgroup per row, which keeps the weights for all of its rows.
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  take_params();
  lane_index = lane;
  let blocks = block_count();
  let weights = start_of_weight(0u);
  let biases = start_of_bias(0u);
  for (var n = 0u; n < blocks; n++) {
    keep_weights(n, pair_of_weight(weights, place(n)), pair_of_bias(biases, place(n)));
  }
  let end = min((group.x + 1u) * chunk(), rows());
  for (var row = group.x * chunk(); row < end; row++) { walk(row, blocks); }
}
