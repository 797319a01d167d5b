#include "families/norm.h"

#include <ATen/ops/as_strided_native.h>

#include <algorithm>
#include <span>

#include "families/launch.h"
#include "families/takers.h"
#include "families/tensor.h"
#include "families/windows.h"
#include "shader/team.h"

namespace torch_webgpu {
namespace {

KernelSource print(const Launch& launch) {
  const auto spec = spec_of<NormSpec>(launch);
  return {label_norm(spec), print_norm(spec, target(), pages_of(launch))};
}

using Operands = std::array<at::Tensor, kNormOperands>;

bool shares(const at::Tensor& a, const at::Tensor& b) { return buffer_of(a) == buffer_of(b); }

// A buffer holds operands of one kind and size, so that it is bound as one array.
void separate(Operands& operands) {
  for (uint32_t i = 1; i < kNormOperands; ++i) {
    for (uint32_t j = 0; j < i; ++j) {
      if (!operands[i].defined() || !operands[j].defined() || !shares(operands[i], operands[j])) continue;
      const bool alike = runs_along(static_cast<NormOperand>(i)) == runs_along(static_cast<NormOperand>(j)) &&
                         operands[i].element_size() == operands[j].element_size();
      if (!alike) operands[i] = operands[i].clone(at::MemoryFormat::Contiguous);
    }
  }
}

// A software adapter gets as many workgroups as there is work for, up to a few per core.
Chunks grid_of(int64_t rows, int64_t length, const NormSpec& spec) {
  const bool kept = spec.keep.blocks > 0;
  const bool together = spec.grouped && !kept && target().subgroup == target().workgroup;  // four rows at a time
  const int64_t step = !spec.grouped   ? target().workgroup
                       : spec.team > 0 ? target().workgroup / spec.team
                       : together      ? 4
                                       : 1;
  if (!target().software) return chunks_of(rows, static_cast<uint32_t>(step));
  const auto up = [](int64_t value, int64_t by) { return (value + by - 1) / by; };
  const int64_t groups = std::clamp<int64_t>(rows * length / 4096, 1, kept ? 16 : 32),
                chunk = up(up(rows, groups), step) * step;
  return {static_cast<uint32_t>(up(rows, chunk)), static_cast<uint32_t>(chunk)};
}

// Rows are cut where the means that they use begin again.
int64_t rows_of_means(const NormRows& norm) { return norm.share * std::max<int64_t>(norm.period, 1); }
bool can_halve(const NormRows& norm) { return norm.rows > rows_of_means(norm); }

// The first rows, then the rest.
void halve_rows(NormKind kind, const NormRows& norm) {
  const int64_t unit = rows_of_means(norm), half = half_of(norm.rows / unit) * unit;
  for (const auto& [begin, count] : {std::pair{int64_t{0}, half}, {half, norm.rows - half}}) {
    const auto some = [&, begin = begin, count = count](const at::Tensor& tensor, int64_t length) {
      if (!tensor.defined()) return tensor;
      return at::native::as_strided_tensorimpl(tensor, {count, length}, {length, 1},
                                               tensor.storage_offset() + begin * length);
    };
    NormRows part = norm;
    part.rows = count;
    for (at::Tensor* wide : {&part.out, &part.x, &part.grad}) *wide = some(*wide, norm.length);
    for (at::Tensor* narrow : {&part.scale, &part.total, &part.moment}) *narrow = some(*narrow, 1);
    if (norm.period == 0 && part.mean.defined()) {
      part.mean = at::native::as_strided_tensorimpl(part.mean, {count / norm.share}, {1},
                                                    part.mean.storage_offset() + begin / norm.share);
    }
    norm_rows(kind, part);
  }
}

uint8_t team_lanes(const NormRows& norm) { return team_of((norm.length + 3) / 4, target().workgroup); }

Takers takers_of(const NormRows& norm, bool quads) {
  const bool grouped = norm.length >= (target().software ? 64 : 16);  // with fewer elements, most lanes would have none
  Takers takers;
  if (grouped && quads && norm.out.defined() && keep_of(target(), norm.length).blocks > 0) {
    takers.push_back(Taker::keeper);
  }
  if (grouped && !target().software && team_lanes(norm) > 0) takers.push_back(Taker::team);
  if (grouped) takers.push_back(Taker::workgroup);
  takers.push_back(Taker::invocation);
  return takers;
}

// The rows again, with other operands.
Contest contest_of(NormKind kind, const NormRows& norm) {
  const bool forward = kind == NormKind::forward;
  static constexpr at::Tensor NormRows::* kForward[] = {&NormRows::out, &NormRows::mean,   &NormRows::scale,
                                                        &NormRows::x,   &NormRows::weight, &NormRows::bias};
  static constexpr at::Tensor NormRows::* kBackward[] = {&NormRows::out,  &NormRows::total, &NormRows::moment,
                                                         &NormRows::x,    &NormRows::grad,  &NormRows::weight,
                                                         &NormRows::bias, &NormRows::mean,  &NormRows::scale};
  using Members = std::span<at::Tensor NormRows::* const>;
  const Members members = forward ? Members(kForward) : Members(kBackward);
  NormRows sizes = norm;
  Contest contest;
  contest.family = "norm";
  contest.outputs = 3;
  for (const auto member : members) {
    contest.tensors.push_back(layout_of(norm.*member));
    sizes.*member = at::Tensor();
  }
  contest.run = [kind, sizes, members](const std::vector<at::Tensor>& tensors) {
    NormRows rows = sizes;
    for (size_t i = 0; i < members.size(); ++i) rows.*members[i] = tensors[i];
    norm_rows(kind, rows);
  };
  return contest;
}

Taker taker_of(NormKind kind, const NormRows& norm, bool quads) {
  const Takers takers = takers_of(norm, quads);
  if (!choices_are_on()) return takers.front();
  ChoiceKey key(Family::norm);
  key.add(static_cast<uint64_t>(kind), 1).add(norm.root_mean_square, 1).add(quads, 1);
  key.add_dtype(norm.out).add_dtype(norm.x).add_dtype(norm.grad).add_dtype(norm.weight);
  key.add_size(norm.rows).add_size(norm.length);
  return choose_by_time(key, takers, norm.rows * norm.length, [&] { return contest_of(kind, norm); });
}

}  // namespace

void norm_rows(NormKind kind, const NormRows& norm) {
  if (norm.rows == 0 || norm.length == 0) return;
  Operands operands{norm.out,  norm.x,     norm.grad,  norm.weight, norm.bias,
                    norm.mean, norm.scale, norm.total, norm.moment};
  separate(operands);
  NormSpec spec{};
  spec.kind = kind;
  spec.root_mean_square = norm.root_mean_square;
  bool quads = norm.length % 4 == 0;
  for (uint32_t i = 0; i < kNormOperands; ++i) {
    if (operands[i].defined() && runs_along(static_cast<NormOperand>(i))) {
      quads = quads && operands[i].storage_offset() % 4 == 0;
    }
  }
  spec.quads = quads;
  const Taker taker = taker_of(kind, norm, quads);
  spec.grouped = taker != Taker::invocation;
  if (taker == Taker::keeper) spec.keep = keep_of(target(), norm.length);
  if (taker == Taker::team) spec.team = team_lanes(norm);
  Launch launch;
  Part parts[kNormOperands];
  for (uint32_t i = 0; i < kNormOperands; ++i) {
    if (operands[i].defined()) parts[i] = part_of(operands[i]);
  }
  if (!bind_parts(launch, parts)) {
    if (can_halve(norm)) return halve_rows(kind, norm);
    bind_pages(norm.name, launch, parts);
  }
  uint32_t* params = launch.params;
  for (uint32_t i = 0; i < kNormOperands; ++i) {
    params[NormParams::kOffsets + i] = 0;
    spec.operands[i].binding = kNormAbsent;
    if (!operands[i].defined()) continue;
    spec.operands[i].dtype = static_cast<uint8_t>(kernel_dtype(operands[i].scalar_type(), norm.name)) & 15;
    spec.operands[i].binding = parts[i].binding & 15;
    const int64_t unit = quads && runs_along(static_cast<NormOperand>(i)) ? 4 : 1;
    params[NormParams::kOffsets + i] = static_cast<uint32_t>(offset_in(parts[i], operands[i]) / unit);
  }
  const auto [groups, chunk] = grid_of(norm.rows, norm.length, spec);
  launch.grid[0] = groups;
  params[NormParams::kRows] = static_cast<uint32_t>(norm.rows);
  params[NormParams::kLength] = static_cast<uint32_t>(norm.length);
  params[NormParams::kChunk] = chunk;
  params[NormParams::kShare] = static_cast<uint32_t>(norm.share);
  params[NormParams::kPeriod] = static_cast<uint32_t>(norm.period == 0 ? norm.rows : norm.period);
  write_scalar(&params[NormParams::kEpsilon], Compute::f32, norm.epsilon);
  launch.param_words = NormParams::kWords;
  set_key(launch, Family::norm, spec);
  launch.print = &print;
  dispatch_chosen(launch);
}

}  // namespace torch_webgpu
