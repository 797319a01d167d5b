// Collects tensors that one formula or program is to work on, and launches as many at a time as can be bound.
#pragma once
#include <ATen/core/Tensor.h>

#include <mutex>
#include <vector>

#include "families/launch.h"
#include "shader/multi_tensor.h"

namespace torch_webgpu {

// The buffers of the tensors that were added, and whether an operand in them is written: a hash table, since every
// tensor asks for each of its operands.
class SeenBuffers {
 public:
  struct Seen {
    const Buffer* buffer = nullptr;
    bool is_written = false;
  };
  const Seen& find(const Buffer* buffer) const { return table_[index_of(buffer)]; }  // without a buffer if not seen
  void add(const Buffer* buffer, bool is_written);
  void clear();

 private:
  size_t index_of(const Buffer* buffer) const;

  std::vector<Seen> table_ = std::vector<Seen>(64);  // a power of two, at most half full
  size_t count_ = 0;
};

// Small operands that are written, and that the caller keeps, are gathered in segments (runtime/buffer_pool.h), of
// which a launch binds many tensors at once. Others are bound one by one. While a tape is recorded all are, since a
// replay exchanges their buffers.
//
// One thread at a time has a MultiTensor, so that buffers stay where they were seen.
class MultiTensor {
 public:
  // `params` are those that the program names; of a formula, s0 and the number that is an operand.
  MultiTensor(const MultiProgram& program, std::vector<uint32_t> params, uint32_t variant);
  MultiTensor(const PointwiseRow& row, std::vector<uint32_t> params, uint32_t variant, bool bits = false);
  MultiTensor(const MultiTensor&) = delete;
  MultiTensor& operator=(const MultiTensor&) = delete;

  struct Roles {  // a bit for each operand
    uint32_t singles = 0, written = 0;
    uint32_t kept = 0;         // worth a copy to where later launches find it
    uint32_t overwritten = 0;  // kept, and worth no copy: all of it is written before it is read
  };
  // One tensor's operands: all dense and walked alike in memory order, but for `singles`, which have one element. `own`
  // is a number of the tensor's own. False, and nothing done, where a launch cannot hold them: an operand is larger
  // than a binding, sits between words, or overlaps another one.
  bool add(c10::ArrayRef<at::Tensor> operands, const Roles& roles, uint32_t own = 0);
  void flush();  // launches what was added

  void set_chunk(uint32_t steps) { chunk_ = steps; }  // quads per workgroup; chosen by the work where not set

 private:
  struct Entry {
    uint32_t elements = 0, own = 0;
    const Buffer* buffers[kMultiOperands] = {};  // one per operand: the tensor's, or the segment it is in
    uint32_t offsets[kMultiOperands] = {}, sizes[kMultiOperands] = {};
  };
  // A launch in the making, of tensors whose operands share buffers in the same way.
  struct Group {
    MultiSpec spec;
    std::vector<Entry> entries;
    std::vector<const Buffer*> columns[kMultiOperands];
  };
  bool describe(c10::ArrayRef<at::Tensor> operands, const Roles& roles, MultiSpec& spec, Entry& entry) const;
  bool may_overlap(c10::ArrayRef<at::Tensor> operands, uint32_t written) const;
  bool overlaps(const MultiSpec& spec, const Entry& entry) const;
  static bool merge(Group& group, const Entry& entry);
  static bool append(Group& group, const MultiSpec& spec, const Entry& entry);
  void launch(Group& group) const;

  const std::unique_lock<std::mutex> lock_;
  MultiSpec spec_;  // the program or formula, and the variant
  const std::vector<uint32_t> params_;
  const bool bits_;
  uint32_t chunk_ = 0;
  std::vector<Group> groups_;
  SeenBuffers seen_;
};

}  // namespace torch_webgpu
