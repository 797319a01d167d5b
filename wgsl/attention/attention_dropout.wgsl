// Which of a query's probabilities stay. A block of random words is for four keys, eight apart, as a lane holds them.
fn random_words(query: u32, key: u32) -> vec4<u32> {
  return random_block((query * ((keys() + TILE - 1u) / TILE) + key / TILE) * 8u + key % 8u);
}

// For one query and four keys, or for four queries and one key.
fn kept(x: vec4<f32>, query: u32, keys: vec4<u32>) -> vec4<f32> {
  return select(vec4<f32>(), x, random_words(query, keys.x) >= vec4<u32>(drop_below()));
}
fn kept_column(x: vec4<f32>, queries: vec4<u32>, key: u32) -> vec4<f32> {
  let part = key % TILE / 8u;
  let words = vec4<u32>(random_words(queries.x, key)[part], random_words(queries.y, key)[part],
      random_words(queries.z, key)[part], random_words(queries.w, key)[part]);
  return select(vec4<f32>(), x, words >= vec4<u32>(drop_below()));
}
