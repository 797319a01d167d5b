// Launches a kernel that is a file of wgsl/ over tensors: one task per invocation, or per workgroup, in turns.
#pragma once
#include <ATen/core/Tensor.h>

#include <initializer_list>

#include "shader/program.h"

namespace torch_webgpu {

struct Tasks {
  int64_t count;
  int64_t work = 1;  // elements per task, about: how many workgroups are worth it
};

// Operands in the order of the program's, undefined where left out; parameters in the order of its names. An operand
// that is written and shares its buffer with another is written in a copy first, unless the program is a grouped one:
// WebGPU binds no buffer twice.
void run(const Program& program, at::ScalarType compute, Tasks tasks, std::initializer_list<at::Tensor> operands,
         std::initializer_list<int64_t> params, uint32_t variant = 0);

// The length of each of about so many blocks. A CPU's caches hold few lines at equal places of a power of two: blocks
// that are walked side by side are an odd number of cache lines long.
int64_t block_span(int64_t length, int64_t blocks);

// How many tasks of long work keep the adapter busy.
int64_t parallel_tasks();

}  // namespace torch_webgpu
