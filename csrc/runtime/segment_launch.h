// A launch of many parts that write tensors which are gathered in segments (buffer_pool.h). It binds a segment once for
// all of them, and parts of the same kernel share its text: what differs between them (parameters, places in segments,
// and which binding holds a tensor that is not gathered) is a table in the parameters.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/fused_text.h"
#include "runtime/gathering.h"
#include "runtime/tape.h"

namespace torch_webgpu {

class SegmentLaunch {
 public:
  SegmentLaunch(const Tape& tape, const Gathered& gathered, uint32_t most_bindings)
      : tape_(tape), gathered_(gathered), most_bindings_(most_bindings) {}

  // Whether the text of a step is one whose accesses can be printed in another way.
  static bool may_take(const Tape& tape, uint32_t step);

  bool add(uint32_t step);  // one that may_take(), and that writes gathered slots alone
  size_t size() const { return members_.size(); }
  const std::vector<uint32_t>& members() const { return members_; }
  Signature signature() const;
  KernelKey key() const;
  KernelSource source() const;
  void append_to(Tape::Program& program, std::shared_ptr<Kernel> kernel) const;

  // What an array consists of: words, which are read and written one, two or four at a time.
  struct Element {
    uint32_t words = 0;  // none: an array of something else
    bool is_atomic = false;
    bool operator==(const Element&) const = default;
  };

 private:
  struct Bound {
    uint32_t slot;
    Element element;
    bool is_written;
  };
  // The bindings of one storage of a text: a segment, or one of several tensors that are only read.
  struct Column {
    bool in_segment;
    std::vector<uint32_t> bindings;
  };
  struct Part {
    uint32_t step;
    std::vector<uint32_t> places;  // by storage: in a segment, counted in windows of 256 bytes, or the binding
  };
  // Parts that share a text.
  struct Kind {
    std::vector<Column> columns;
    std::vector<Part> parts;
  };

  const KernelText& text_of(const Kind& kind) const { return *tape_.text(kind.parts.front().step); }
  uint32_t param_vectors(const Kind& kind) const;   // of one part
  uint32_t record_vectors(const Kind& kind) const;  // of its row in the table, which begins with them
  bool bind(std::vector<Bound>& bound, uint32_t slot, Element element, bool is_written, uint32_t& binding) const;
  bool suits(const Kind& kind, uint32_t step, const std::vector<Column>& columns) const;
  std::string load_function(size_t kind, size_t storage) const;
  std::string run_function(size_t kind) const;
  std::vector<KernelText::Access> accesses(size_t kind) const;
  bool is_direct(const Kind& kind, size_t storage) const;

  const Tape& tape_;
  const Gathered& gathered_;
  const uint32_t most_bindings_;
  std::vector<Bound> bound_;
  std::vector<Kind> kinds_;
  std::vector<uint32_t> members_;
  uint32_t vectors_ = kMostKinds;
  uint64_t groups_ = 0;

  static constexpr uint32_t kMostKinds = 8;  // each has a vector in front of the table: {end, first row, rows}
};

}  // namespace torch_webgpu
