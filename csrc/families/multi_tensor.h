// Collects tensors that one formula or program is to work on, and launches as many at a time as can be bound.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "families/launch.h"
#include "shader/multi_tensor.h"

namespace torch_webgpu {

class MultiTensor {
 public:
  // `params` are those that the program names; of a formula, s0 and the number that is an operand.
  MultiTensor(const MultiProgram& program, std::vector<uint32_t> params, uint32_t variant);
  MultiTensor(const PointwiseRow& row, std::vector<uint32_t> params, uint32_t variant, bool bits = false);
  MultiTensor(const MultiTensor&) = delete;
  MultiTensor& operator=(const MultiTensor&) = delete;

  // One tensor's operands: all dense and walked alike in memory order, but for those in `singles`, a bit each, which
  // have one element. `written` are the operands that the kernel writes, `own` a number of the tensor's own. False, and
  // nothing done, where a launch cannot hold them: an operand is larger than a binding, sits between words, or shares
  // its buffer with another operand in a way that one binding cannot serve.
  bool add(c10::ArrayRef<at::Tensor> operands, uint32_t singles, uint32_t written, uint32_t own = 0);
  void flush();  // launches what was added

  void set_chunk(uint32_t steps) { chunk_ = steps; }  // quads per workgroup; chosen by the work where not set

 private:
  struct Entry {
    uint32_t elements = 0, own = 0;
    const Buffer* buffers[kMultiOperands] = {};  // one per operand
    uint32_t offsets[kMultiOperands] = {}, sizes[kMultiOperands] = {};
  };
  bool describe(c10::ArrayRef<at::Tensor> operands, uint32_t singles, uint32_t written, MultiSpec& spec,
                Entry& entry) const;
  bool overlaps(const MultiSpec& spec, const Entry& entry, uint32_t written) const;
  bool merge(const MultiSpec& spec, const Entry& entry);
  bool append(const MultiSpec& spec, const Entry& entry);

  MultiSpec spec_;  // describes the launch being collected
  const std::vector<uint32_t> params_;
  const bool bits_;
  uint32_t chunk_ = 0;
  std::vector<Entry> entries_;
  std::vector<const Buffer*> columns_[kMultiOperands];
};

}  // namespace torch_webgpu
