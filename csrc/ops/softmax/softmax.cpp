// softmax, log_softmax and their backwards over any dimension and any strides.
#include "shader/softmax.h"

#include <ATen/ops/_log_softmax_backward_data_meta.h>
#include <ATen/ops/_log_softmax_meta.h>
#include <ATen/ops/_softmax_backward_data_meta.h>
#include <ATen/ops/_softmax_meta.h>
#include <torch/library.h>

#include <algorithm>

#include "families/structured.h"
#include "families/takers.h"
#include "families/windows.h"
#include "ops/native.h"
#include "shader/team.h"

namespace torch_webgpu {
namespace {

KernelSource print(const Launch& launch) {
  const auto spec = spec_of<SoftmaxSpec>(launch);
  return {label_softmax(spec), print_softmax(spec, target(), pages_of(launch))};
}

using Operands = c10::SmallVector<at::Tensor, kSoftmaxOperands>;  // the result first

struct Dim {
  int64_t size, strides[kSoftmaxOperands];
};
using Dims = c10::SmallVector<Dim, 8>;

// All dimensions but the row's, the innermost first, neighbours merged where every operand walks them as one.
Dims rows_of(const Operands& operands, int64_t row) {
  Dims dims;
  for (int64_t d = operands[0].dim() - 1; d >= 0; --d) {
    if (d == row || operands[0].size(d) == 1) continue;
    Dim dim{operands[0].size(d), {}};
    for (size_t i = 0; i < operands.size(); ++i) dim.strides[i] = operands[i].stride(d);
    const auto continues = [&](const Dim& inner) {
      for (size_t i = 0; i < operands.size(); ++i) {
        if (dim.strides[i] != inner.strides[i] * inner.size) return false;
      }
      return true;
    };
    if (!dims.empty() && continues(dims.back())) {
      dims.back().size *= dim.size;
    } else {
      dims.push_back(dim);
    }
  }
  return dims;
}

// A row per workgroup where rows are long and run along memory, or are few.
bool wants_group(int64_t rows, int64_t length, bool along_memory) {
  const int64_t least = !target().software && along_memory ? 16 : 64;
  return length >= least && (along_memory || rows < 16 * int64_t{target().workgroup});
}

// A software adapter gets as many workgroups as there is work for, up to a few per core.
Chunks grid_of(int64_t rows, int64_t length, bool grouped) {
  const int64_t lanes = grouped ? 1 : target().workgroup;
  if (!target().software) return chunks_of(rows, lanes);
  const auto up = [](int64_t value, int64_t by) { return (value + by - 1) / by; };
  const int64_t groups = std::clamp<int64_t>(rows * length / 4096, 1, 32), chunk = up(up(rows, groups), lanes) * lanes;
  return {static_cast<uint32_t>(up(rows, chunk)), static_cast<uint32_t>(chunk)};
}

void softmax(SoftmaxKind kind, const char* name, Operands operands, int64_t dim);

Takers takers_of(SoftmaxKind kind, int64_t rows, int64_t length, bool along_memory, bool quads) {
  Takers takers;
  if (wants_group(rows, length, along_memory)) {
    // The first walk of log_softmax's backward has no use for the result, so there is little to keep.
    const bool keeps = quads && kind != SoftmaxKind::log_softmax_backward;
    if (keeps && keep_of(target(), length).blocks > 0) takers.push_back(Taker::keeper);
    if (!target().software && along_memory && team_of((length + 3) / 4, target().workgroup) > 0) {
      takers.push_back(Taker::team);
    }
    takers.push_back(Taker::workgroup);
  }
  takers.push_back(Taker::invocation);
  return takers;
}

Taker taker_of(SoftmaxKind kind, const Operands& operands, int64_t row, bool along_memory, bool quads) {
  const int64_t length = operands[0].size(row), rows = operands[0].numel() / length;
  const Takers takers = takers_of(kind, rows, length, along_memory, quads);
  if (!choices_are_on()) return takers.front();
  ChoiceKey key(Family::softmax);
  key.add(static_cast<uint64_t>(kind), 2).add(along_memory, 1).add(quads, 1);
  key.add_dtype(operands[0]).add_dtype(operands[1]).add_size(rows).add_size(length);
  return choose_by_time(key, takers, operands[0].numel(), [&] {
    Contest contest;
    contest.family = "softmax";
    for (const at::Tensor& tensor : operands) contest.tensors.push_back(layout_of(tensor));
    contest.outputs = 1;
    contest.run = [kind, row](const std::vector<at::Tensor>& of) {
      softmax(kind, "softmax", Operands(of.begin(), of.end()), row);
    };
    return contest;
  });
}

void softmax(SoftmaxKind kind, const char* name, Operands operands, int64_t dim) {
  if (operands[0].numel() == 0) return;
  for (at::Tensor& tensor : operands) {
    TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(tensor.scalar_type()), "\"", name, "\" not implemented for '",
                                toString(tensor.scalar_type()), "'");
    if (tensor.dim() == 0) tensor = tensor.view({1});
  }
  for (size_t i = 1; i < operands.size(); ++i) {
    if (buffer_of(operands[i]) != buffer_of(operands[0])) continue;
    // A buffer that is written is not read: out= may name a part of an operand's.
    const at::Tensor out = operands[0];
    operands[0] = empty_tensor(out.sizes(), {}, out.scalar_type());
    softmax(kind, name, operands, dim);
    out.copy_(operands[0]);
    return;
  }
  const int64_t row = at::maybe_wrap_dim(dim, operands[0].dim());
  Launch launch;
  Part parts[kSoftmaxOperands];
  for (size_t i = 0; i < operands.size(); ++i) parts[i] = part_of(operands[i]);
  const bool fits = bind_parts(launch, {parts, operands.size()});
  const at::Tensor& large = widest(operands);
  const int64_t cut = fits ? -1 : widest_dim(large, row);
  if (!fits && cut < 0) bind_pages(name, launch, {parts, operands.size()});  // a row that no binding holds
  if (cut >= 0) {
    const int64_t size = large.size(cut), half = half_of(size);
    for (const auto& [begin, count] : {std::pair{int64_t{0}, half}, {half, size - half}}) {
      Operands some;
      for (const at::Tensor& tensor : operands) some.push_back(tensor.narrow(cut, begin, count));
      softmax(kind, name, some, row);
    }
    return;
  }
  Dims dims = rows_of(operands, row);
  int64_t length = operands[0].size(row), rows = operands[0].numel() / length;

  SoftmaxSpec spec{};
  spec.kind = static_cast<uint8_t>(kind);
  spec.operands = operands.size();
  spec.rank = dims.size();
  bool along_memory = true, quads = length % 4 == 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    along_memory = along_memory && operands[i].stride(row) == 1;
    quads = quads && operands[i].storage_offset() % 4 == 0 && operands[i].scalar_type() == operands[0].scalar_type();
    for (const Dim& d : dims) quads = quads && d.strides[i] % 4 == 0;
  }
  spec.quads = quads && along_memory;
  const Taker taker = taker_of(kind, operands, row, along_memory, spec.quads);
  spec.grouped = taker != Taker::invocation;
  if (taker == Taker::keeper) spec.keep = keep_of(target(), length);
  if (taker == Taker::team) spec.team = team_of((length + 3) / 4, target().workgroup);
  const int64_t width = spec.quads ? 4 : 1;

  const SoftmaxParams at(spec);
  TORCH_CHECK(at.words() <= kParamWords, "webgpu: ", name, " has too many dimensions");
  launch.param_words = at.words();
  uint32_t* params = launch.params;
  for (uint32_t i = 0; i < operands.size(); ++i) {
    spec.dtype[i] = static_cast<uint8_t>(kernel_dtype(operands[i].scalar_type(), name));
    spec.binding[i] = static_cast<uint8_t>(parts[i].binding);
    params[at.offset(i)] = offset_in(parts[i], operands[i]) / width;
    params[at.row_stride(i)] = operands[i].stride(row);
    for (size_t d = 0; d < dims.size(); ++d) params[at.stride(i, d)] = dims[d].strides[i] / width;
  }
  for (size_t d = 0; d < dims.size(); ++d) params[at.size(d)] = dims[d].size;
  const auto [groups, chunk] =
      spec.team > 0 ? chunks_of(rows, target().workgroup / spec.team) : grid_of(rows, length, spec.grouped);
  params[SoftmaxParams::kRows] = rows;
  params[SoftmaxParams::kLength] = length / width;
  params[SoftmaxParams::kChunk] = chunk;
  launch.grid[0] = groups;
  set_key(launch, Family::softmax, spec);
  launch.print = &print;
  dispatch_chosen(launch);
}

template <class Meta, SoftmaxKind Kind>
struct Forward {
  static constexpr const char* kName =
      Kind == SoftmaxKind::softmax ? "softmax_lastdim_kernel_impl" : "log_softmax_lastdim_kernel_impl";
  static void run(Structured<Meta>& op, const at::Tensor& self, int64_t dim, bool half_to_float) {
    op.meta(self, dim, half_to_float);
    TORCH_CHECK(!half_to_float, "softmax with half to float conversion is not supported on CPU");
    softmax(Kind, kName, {op.outputs[0], self}, dim);
  }
};

template <class Meta, SoftmaxKind Kind>
struct Backward {
  static constexpr const char* kName = Kind == SoftmaxKind::softmax_backward
                                           ? "softmax_backward_lastdim_kernel_impl"
                                           : "log_softmax_backward_lastdim_kernel_impl";
  static void run(Structured<Meta>& op, const at::Tensor& grad, const at::Tensor& output, int64_t dim,
                  at::ScalarType input_dtype) {
    op.meta(grad, output, dim, input_dtype);
    softmax(Kind, kName, {op.outputs[0], grad, output}, dim);
  }
};

using Softmax = Forms<Forward<at::meta::structured__softmax, SoftmaxKind::softmax>>;
using LogSoftmax = Forms<Forward<at::meta::structured__log_softmax, SoftmaxKind::log_softmax>>;
using SoftmaxBackward = Forms<Backward<at::meta::structured__softmax_backward_data, SoftmaxKind::softmax_backward>>;
using LogSoftmaxBackward =
    Forms<Backward<at::meta::structured__log_softmax_backward_data, SoftmaxKind::log_softmax_backward>>;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&Softmax::functional>(library, "_softmax");
  native<&Softmax::out>(library, "_softmax.out");
  native<&LogSoftmax::functional>(library, "_log_softmax");
  native<&LogSoftmax::out>(library, "_log_softmax.out");
  native<&SoftmaxBackward::functional>(library, "_softmax_backward_data");
  native<&SoftmaxBackward::out>(library, "_softmax_backward_data.out");
  native<&LogSoftmaxBackward::functional>(library, "_log_softmax_backward_data");
  native<&LogSoftmaxBackward::out>(library, "_log_softmax_backward_data.out");
}

}  // namespace
}  // namespace torch_webgpu
