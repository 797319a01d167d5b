// The families that work row by row: normalisations, softmax, selection.
#include "kernels.h"
#include "shader/norm.h"
#include "shader/selection.h"
#include "shader/softmax.h"

namespace torch_webgpu::test {
namespace {

constexpr int64_t kLengths[] = {64, 1000, 1024};  // a block, the last of several cut, whole ones

NormSpec norm_of(NormKind kind, DType dtype, bool affine, bool writes) {
  using Operand = NormOperand;
  NormSpec spec{};
  spec.kind = kind;
  uint32_t bindings = 0;
  for (uint32_t i = 0; i < kNormOperands; ++i) {
    const auto operand = static_cast<Operand>(i);
    const bool is_affine = operand == Operand::weight || operand == Operand::bias,
               backward = operand == Operand::grad || operand == Operand::total;
    const bool present = operand == Operand::out ? writes
                         : is_affine             ? affine && (kind == NormKind::forward || operand == Operand::weight)
                         : backward              ? kind == NormKind::backward
                         : operand == Operand::moment ? kind == NormKind::backward || !writes
                                                      : true;
    spec.operands[i].dtype = number_of(runs_along(operand) ? dtype : DType::f32) & 15;
    spec.operands[i].binding = (present ? bindings++ : kNormAbsent) & 15;
  }
  return spec;
}

}  // namespace

void print_norm_kernels(const Target& target, const Emit& emit) {
  const auto print = [&](const NormSpec& spec) { emit(label_norm(spec), print_norm(spec, target)); };
  for (const NormKind kind : {NormKind::forward, NormKind::backward}) {
    for (const DType dtype : kFloats) {
      for (const bool affine : kEither) {
        for (const bool writes : kEither) {
          NormSpec spec = norm_of(kind, dtype, affine, writes);
          for (const bool root_mean_square : kEither) {
            if (root_mean_square && !writes) continue;
            spec.root_mean_square = root_mean_square;
            for (const bool grouped : kEither) {
              spec.grouped = grouped;
              for (const bool quads : kEither) {
                spec.quads = quads;
                print(spec);
                if (affine) emit(label_norm(spec), print_norm(spec, target, kInPages));
              }
              if (!grouped || !writes || root_mean_square) continue;
              for (const int64_t length : kLengths) {
                spec.keep = keep_of(target, length);
                print(spec);
              }
              spec.keep = {};
            }
          }
        }
      }
    }
  }
  // Statistics in halves share words.
  NormSpec spec = norm_of(NormKind::forward, DType::f16, true, true);
  for (auto& operand : spec.operands) operand.dtype = number_of(DType::f16) & 15;
  print(spec);
}

void print_softmax_kernels(const Target& target, const Emit& emit) {
  for (const SoftmaxKind kind : {SoftmaxKind::softmax, SoftmaxKind::log_softmax, SoftmaxKind::softmax_backward,
                                 SoftmaxKind::log_softmax_backward}) {
    for (const DType dtype : kFloats) {
      SoftmaxSpec spec{};
      spec.kind = static_cast<uint8_t>(kind);
      spec.operands = kind < SoftmaxKind::softmax_backward ? 2 : 3;
      for (uint32_t i = 0; i < spec.operands; ++i) {
        spec.dtype[i] = number_of(dtype);
        spec.binding[i] = static_cast<uint8_t>(i);
      }
      const auto print = [&] { emit(label_softmax(spec), print_softmax(spec, target)); };
      for (const uint8_t rank : {0, 2}) {
        spec.rank = rank;
        for (const bool grouped : kEither) {
          spec.grouped = grouped;
          for (const bool quads : kEither) {
            spec.quads = quads;
            print();
            if (rank > 0) emit(label_softmax(spec), print_softmax(spec, target, kInPages));
          }
        }
        if (kind == SoftmaxKind::log_softmax_backward || rank == 0) continue;
        for (const int64_t length : kLengths) {
          spec.keep = keep_of(target, length);
          print();
        }
        spec.keep = {};
      }
      // A result of another dtype than its operands.
      spec.quads = 0;
      spec.dtype[0] = number_of(dtype == DType::f32 ? DType::f16 : DType::f32);
      print();
    }
  }
}

void print_selection_kernels(const Target& target, const Emit& emit) {
  for (const SelectionKind kind :
       {SelectionKind::median, SelectionKind::nanmedian, SelectionKind::mode, SelectionKind::mode_of_sorted}) {
    for (const DType dtype : kDTypes) {
      SelectionSpec spec{};
      spec.kind = static_cast<uint8_t>(kind);
      spec.dtype = number_of(dtype);
      emit(label_selection(spec), print_selection(spec, target));
      emit(label_selection(spec), print_selection(spec, target, kInPages));
    }
  }
}

}  // namespace torch_webgpu::test
