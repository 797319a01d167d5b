// Text from elsewhere that takes the elements of a product, a convolution or attention instead of the kernel's own
// store. `index` counts the elements of the result as if it lay dense in memory.
#pragma once
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace torch_webgpu {

struct EpilogueText {
  std::string label;
  std::string elements;            // fn epilogue(index: u32, product: f32), and what it needs
  std::string fours;               // fn epilogue_four(index: u32, product: vec4<f32>): four neighbours; may be empty
  std::vector<std::string> files;  // below wgsl/, that the texts build on
  std::vector<uint8_t> pages;      // how many bindings each of its tensors has
  uint32_t id;                     // from 1, for keys without room for a pointer

  uint32_t bindings() const { return std::accumulate(pages.begin(), pages.end(), 0u); }
};

// Products and convolutions bind their two operands first, for reading; the text declares its own bindings behind them.
// From this word of the parameters on are the offsets of what it binds, and then its own words. Those of attention are
// in shader/attention.h.
constexpr uint32_t kEpilogueBindings = 2, kEpilogueWords = 64;

}  // namespace torch_webgpu
