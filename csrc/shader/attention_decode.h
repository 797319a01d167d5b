// Prints attention of few queries over many keys, for GPUs: a workgroup takes a part of the keys, holds them and their
// values in registers, and goes over all queries that share them, so that each is loaded once. Another kernel joins the
// parts (wgsl/attention/attention_join.wgsl).
#pragma once
#include <cstdint>
#include <string>

namespace torch_webgpu {

struct DecodeAttention {
  uint32_t team;   // lanes that share a key: a power of two from 8 on
  uint32_t quads;  // of a key, in a lane
  bool mask;

  static constexpr uint32_t kLanes = 256, kKeysOfLane = 8;
  constexpr uint32_t teams() const { return kLanes / team; }
  constexpr uint32_t keys() const { return teams() * kKeysOfLane; }  // of a workgroup
};

// The one for heads and values of up to so many quads. A lane loads 16 bytes of a key.
constexpr DecodeAttention decode_for(uint32_t quads, uint32_t element_bytes, bool mask) {
  const uint32_t each = element_bytes == 4 ? 1 : 2;
  uint32_t team = 8;
  while (team * each < quads) team *= 2;
  return {team, each, mask};
}

std::string print_attention_decode(const DecodeAttention& kernel);

}  // namespace torch_webgpu
