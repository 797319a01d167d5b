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

// Functional and out= forms: Apply::run(outputs..., arguments...).
template <class Meta, class Apply, class Signature = decltype(&Meta::meta)>
struct OneOutput;
template <class Meta, class Apply, class Result, class... Arguments>
struct OneOutput<Meta, Apply, Result (Meta::*)(Arguments...)> {
  static at::Tensor functional(Arguments... arguments) {
    Structured<Meta> op(Form::functional);
    op.meta(arguments...);
    Apply::run(op.outputs[0], arguments...);
    return std::move(op.outputs[0]);
  }
  static at::Tensor& out(Arguments... arguments, at::Tensor& out) {
    Structured<Meta> op(Form::out);
    op.outputs[0] = out;
    op.meta(arguments...);
    Apply::run(out, arguments...);
    return out;
  }
};

template <class Meta, class Apply, class Signature = decltype(&Meta::meta)>
struct TwoOutputs;
template <class Meta, class Apply, class Result, class... Arguments>
struct TwoOutputs<Meta, Apply, Result (Meta::*)(Arguments...)> {
  static std::tuple<at::Tensor, at::Tensor> functional(Arguments... arguments) {
    Structured<Meta, 2> op(Form::functional);
    op.meta(arguments...);
    Apply::run(op.outputs[0], op.outputs[1], arguments...);
    return {std::move(op.outputs[0]), std::move(op.outputs[1])};
  }
  static std::tuple<at::Tensor&, at::Tensor&> out(Arguments... arguments, at::Tensor& out, at::Tensor& indices) {
    Structured<Meta, 2> op(Form::out);
    op.outputs = {out, indices};
    op.meta(arguments...);
    Apply::run(out, indices, arguments...);
    return {out, indices};
  }
};

}  // namespace torch_webgpu
