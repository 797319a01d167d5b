#include "families/program.h"

#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "device/storage.h"
#include "families/windows.h"

namespace torch_webgpu {
namespace {

KernelSource print(const Launch& launch) {
  const auto spec = spec_of<ProgramSpec>(launch);
  return {label_program(spec), print_program(spec, target(), pages_of(launch))};
}

int64_t ceil_div(int64_t value, int64_t by) { return (value + by - 1) / by; }

// As chunks_of, but a task may be long.
Chunks chunks_of_work(Tasks tasks, int64_t workgroup) {
  const int64_t rounds = ceil_div(tasks.count, workgroup);
  int64_t groups = std::min<int64_t>(rounds, 65535);
  if (target().software) groups = std::clamp<int64_t>(std::min(rounds, tasks.count * tasks.work / 2048), 1, 16);
  const int64_t chunk = ceil_div(rounds, groups) * workgroup;
  return {static_cast<uint32_t>(ceil_div(tasks.count, chunk)), static_cast<uint32_t>(chunk)};
}

bool shares_buffer(const at::Tensor* operands, size_t count, size_t which) {
  for (size_t i = 0; i < count; ++i) {
    if (i != which && operands[i].defined() && buffer_of(operands[i]) == buffer_of(operands[which])) return true;
  }
  return false;
}

}  // namespace

int64_t block_span(int64_t length, int64_t blocks) {
  const int64_t span = ceil_div(length, blocks);
  if (!target().software || blocks == 1 || span < 1024) return span;
  return (ceil_div(span, 16) | 1) * 16;
}

int64_t parallel_tasks() { return target().software ? 128 : 16384; }

void run(const Program& program, at::ScalarType compute, Tasks tasks, std::initializer_list<at::Tensor> operands,
         std::initializer_list<int64_t> params, uint32_t variant) {
  if (tasks.count == 0) return;
  TORCH_INTERNAL_ASSERT(operands.size() <= kProgramOperands);
  at::Tensor used[kProgramOperands], nothing;
  std::copy(operands.begin(), operands.end(), used);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (program.written >> i & 1) own_memory(used[i]);
  }
  uint8_t copied = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (program.grouped || !used[i].defined() || !(program.written >> i & 1) ||
        !shares_buffer(used, operands.size(), i))
      continue;
    copied |= 1u << i;
    used[i] = used[i].clone(at::MemoryFormat::Contiguous);
  }
  ProgramSpec spec{};
  spec.program = &program;
  spec.compute = static_cast<uint8_t>(compute_type(kernel_dtype(compute, program.name)));
  spec.variant = variant;
  Launch launch;
  uint32_t* words = launch.params;
  Part parts[kProgramOperands];
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!used[i].defined()) continue;
    parts[i] = part_of(used[i]);
    if (!parts[i].buffer) {  // nothing is read of an operand without elements
      if (!nothing.defined()) nothing = empty_tensor({2}, {}, at::kFloat);
      parts[i] = part_of(nothing);
    }
  }
  bind_pages(program.name, launch, {parts, operands.size()});
  for (size_t i = 0; i < operands.size(); ++i) {
    words[ProgramParams::kOffsets + i] = 0;
    spec.operands[i].binding = kAbsent;
    if (!used[i].defined()) continue;
    spec.operands[i].dtype = static_cast<uint8_t>(kernel_dtype(used[i].scalar_type(), program.name)) & 15;
    const int64_t unit = program.quads >> i & 1 ? 4 : program.pairs >> i & 1 ? 2 : 1;  // elements per step
    words[ProgramParams::kOffsets + i] = static_cast<uint32_t>(offset_in(parts[i], used[i]) / unit);
    spec.operands[i].binding = parts[i].binding & 15;
  }
  TORCH_CHECK(tasks.count < (int64_t{1} << 32), "webgpu: ", program.name, ": more than 2^32 elements");
  const auto [groups, chunk] = chunks_of_work(tasks, program.grouped ? 1 : target().workgroup);
  words[ProgramParams::kTasks] = static_cast<uint32_t>(tasks.count);
  words[ProgramParams::kChunk] = chunk;
  uint32_t word = ProgramParams::kNamed;
  for (const int64_t param : params) words[word++] = static_cast<uint32_t>(param);
  launch.param_words = word;
  launch.grid[0] = groups;
  set_key(launch, Family::program, spec);
  launch.print = &print;
  runtime().stream.dispatch(launch);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (copied >> i & 1) (operands.begin() + i)->copy_(used[i]);
  }
}

}  // namespace torch_webgpu
