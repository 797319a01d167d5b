// How elements lie in a buffer: the text that loads and stores them, for every dtype and every printer.
//
// A raw element is a u32 with the element in its low bits, a vec2<u32> for 8 bytes, a vec4<u32> for 16. A quad is four
// neighbours, the first at a multiple of four elements.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "shader/dtype.h"

namespace torch_webgpu {

using RawQuad = std::array<std::string, 4>;

// A buffer as a kernel sees it. Indices are expressions; they count elements, unless a function says otherwise.
struct Memory {
  std::string name;           // the variable
  uint32_t bytes;             // per element
  std::string array = "u32";  // element type of the variable: u32, vec2<u32>, vec4<u32> or atomic<u32>
  bool paged = false;         // functions take the place of the variable (see ShaderSource::bind)

  // The raw element at an index. The other bits of its word hold its neighbours, unless it is loaded alone.
  std::string load(const std::string& index) const;
  std::string load_alone(const std::string& index) const;

  // Statements that evaluate a raw element, then store it. They declare `raw`, unless the element is a name already.
  // An element that is smaller than a word needs an array of atomic<u32>, since other invocations may own its
  // neighbours: it is cleared and set, or exchanged by a loop, so that no one sees the word without it. Both declare
  // `shift`.
  std::string store(const std::string& index, const std::string& raw, const std::string& indent = "  ") const;
  std::string exchange(const std::string& index, const std::string& raw) const;

  // The array itself: an element of it, and the statement that sets one.
  std::string element(const std::string& index) const;
  std::string assign(const std::string& index, const std::string& value) const;
  // Calls of an array of atomic<u32>: And, Or or Add, and a compare-exchange whose result has `exchanged` and
  // `old_value`.
  std::string atomic(const std::string& function, const std::string& index, const std::string& value) const;
  std::string swap(const std::string& index, const std::string& old, const std::string& value) const;
  std::string word(const std::string& index) const;        // a u32 of the array; `index` counts those
  std::string word_index(const std::string& index) const;  // index of the word that holds an element

  // An invocation that owns a whole word puts its elements into it one by one; `place` counts them from its low bits.
  std::string elements_per_word() const;
  std::string alone(const std::string& raw) const;  // without what is beside the element
  std::string shifted(const std::string& raw, const std::string& place) const;
  std::string inserted(const std::string& word, const std::string& raw, const std::string& place) const;

  // Quads, in an array of array_of_quads(bytes); indices count quads. Loading one declares `variable`, and `variable`h
  // for the second half of four elements of 8 bytes.
  std::string load_quad(const std::string& variable, const std::string& index) const;
  std::string raw_of_quad(const std::string& variable, uint32_t element) const;  // alone
  std::string store_quad(const std::string& index, const RawQuad& raw) const;
  std::string packed(const RawQuad& raw) const;  // a quad of elements of at most a word, as the array's element

 private:
  uint32_t bits() const { return 8 * bytes; }
  std::string mask() const;
  std::string shift_of(const std::string& index) const;
};

const char* array_of_quads(uint32_t element_bytes);

// A raw element as a value of the type that a kernel computes in, and back.
std::string from_raw(DType dtype, Compute type, const std::string& raw);
std::string to_raw(DType dtype, Compute type, const std::string& value);

// A quad of floats as it was loaded, as a vec4<f32>; and a vec4<f32> as an element of the array.
std::string floats_of_quad(DType dtype, const std::string& variable);
std::string quad_of_floats(DType dtype, const std::string& value);

}  // namespace torch_webgpu
