// Ops over the last one to three dimensions of [batch, channels, ...], whatever the memory format: one launcher, and
// the forms of a structured op.
#pragma once
#include <array>
#include <initializer_list>
#include <tuple>

#include "families/indexed.h"
#include "families/structured.h"

namespace torch_webgpu {

// The same body twice: with the channels outside, and innermost as in channels_last. It sees w, h and z, the output's
// coordinates.
struct SpatialRow {
  IndexedRow planes, channels;
};
#define SPATIAL_ROW(name, body, flags, values, library)                              \
  {                                                                                  \
    {name, "let w = d0; let h = d1; let z = d2;" body, flags, values, 1, library}, { \
      name, "let w = d1; let h = d2; let z = d3;" body, flags, values, 1, library    \
    }                                                                                \
  }

// As [batch, channels, depth, height, width], with ones in front of the spatial dimensions where there are fewer.
at::Tensor five_dims(at::Tensor tensor, int64_t spatial);

inline bool begins_quad(const at::Tensor& tensor) { return tensor.storage_offset() % 4 == 0; }

class Spatial {
 public:
  enum class Reach { element, plane };  // an operand's place: that of the output's element, or where its plane begins

  // Tensors are of five dimensions; the first operand is the output, and gives the order of the walk.
  Spatial(const SpatialRow& row, at::ScalarType compute) : row_(row), compute_(compute) {}
  Spatial& operand(const at::Tensor& tensor, Reach reach, bool bits = false);
  Spatial& word(int64_t value);
  Spatial& number(double value);
  void run();

 private:
  struct Operand {
    at::Tensor tensor;
    Reach reach;
    bool bits;
  };

  const SpatialRow& row_;
  const at::ScalarType compute_;
  c10::SmallVector<Operand, 4> operands_;
  c10::SmallVector<uint32_t, 32> words_;
};

// The CPU's error for a dtype that it has no kernel for, by the name of that kernel.
void check_dtype(const char* kernel, at::ScalarType dtype, std::initializer_list<at::ScalarType> known);

// Apply::run(outputs..., arguments...) as the body of an op.
template <class Apply>
struct IntoOutputs {
  template <class Op, class... Args>
  static void run(Op& op, const Args&... args) {
    std::apply([&](const auto&... outputs) { Apply::run(outputs..., args...); }, op.outputs);
  }
};
template <class Meta, class Apply>
using OneOutput = FormsOf<Meta, IntoOutputs<Apply>>;
template <class Meta, class Apply>
using TwoOutputs = FormsOf<Meta, IntoOutputs<Apply>, 2>;

}  // namespace torch_webgpu
