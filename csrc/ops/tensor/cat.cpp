// cat, and so stack: as many inputs per launch as the bindings allow.
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/cat_meta.h>
#include <torch/library.h>

#include <algorithm>
#include <numeric>

#include "device/storage.h"
#include "families/launch.h"
#include "families/structured.h"
#include "ops/native.h"
#include "shader/join.h"

namespace torch_webgpu {
namespace {

KernelSource print(const Launch& launch) {
  const auto spec = spec_of<JoinSpec>(launch);
  return {label_join(spec), print_join(spec, target())};
}

// A tensor as rows without gaps, in elements: the dimensions before `dim` count the rows.
struct Rows {
  const Buffer* buffer;
  int64_t offset, length, stride;
};

std::optional<Rows> rows_of(const at::Tensor& tensor, int64_t dim) {
  Rows rows{buffer_of(tensor), tensor.storage_offset(), 1, 0};
  for (int64_t d = tensor.dim(); d-- > dim;) {
    if (tensor.size(d) != 1 && tensor.stride(d) != rows.length) return std::nullopt;
    rows.length *= tensor.size(d);
  }
  int64_t count = 1;
  for (int64_t d = dim; d-- > 0;) {
    if (tensor.size(d) == 1) continue;
    if (count == 1) rows.stride = tensor.stride(d);
    if (tensor.stride(d) != rows.stride * count) return std::nullopt;
    count *= tensor.size(d);
  }
  if (count == 1) rows.stride = rows.length;
  if (tensor.storage().nbytes() > max_binding_bytes()) return std::nullopt;
  return rows;
}

// Dimensions from the outermost in memory to the innermost.
std::vector<int64_t> memory_order(const at::Tensor& tensor) {
  std::vector<int64_t> order(tensor.dim());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return tensor.stride(a) > tensor.stride(b); });
  return order;
}

class Join {
 public:
  Join(const at::Tensor& out, int64_t dim)
      : order_(memory_order(out)),
        out_(out.permute(order_)),
        dim_(std::find(order_.begin(), order_.end(), dim) - order_.begin()),
        element_bytes_(out.element_size()),
        into_(rows_of(out_, dim_)) {
    for (int64_t d = 0; d < dim_; ++d) rows_ *= out_.size(d);
    for (int64_t d = dim_ + 1; d < out_.dim(); ++d) inner_ *= out_.size(d);
  }

  void add(const at::Tensor& given) {
    if (given.device() != out_.device()) [[unlikely]]
      check_same_device({&out_, &given});
    const at::Tensor tensor = given.permute(order_);
    const int64_t size = tensor.size(dim_);
    const at::Tensor target = out_.narrow(dim_, filled_, size);
    const bool same = given.device() == out_.device() && given.scalar_type() == out_.scalar_type() &&
                      given.is_neg() == out_.is_neg() && given.is_conj() == out_.is_conj();
    const auto rows = into_ && same ? rows_of(tensor, dim_) : std::nullopt;
    if (rows && goes_on(*rows)) {
      inputs_.back().rows.length += rows->length;
      inputs_.back().is_joined = true;
    } else if (rows) {
      if (is_full(rows->buffer)) flush();
      if (inputs_.empty()) begin_ = filled_;
      inputs_.push_back({*rows, tensor, target, false});
    } else {
      flush();
      target.copy_(tensor);
    }
    filled_ += size;
  }

  void flush() {
    if (inputs_.size() == 1 && !inputs_[0].is_joined) {
      inputs_[0].target.copy_(inputs_[0].tensor);
    } else if (!inputs_.empty()) {
      launch();
    }
    inputs_.clear();
  }

 private:
  struct Input {
    Rows rows;
    at::Tensor tensor, target;
    bool is_joined;  // with inputs that go on where it ends
  };

  // Norms, which are stacked, lie one behind another.
  bool goes_on(const Rows& rows) const {
    if (rows_ != 1 || inputs_.empty()) return false;
    const Rows& last = inputs_.back().rows;
    return last.buffer == rows.buffer && last.offset + last.length == rows.offset;
  }

  bool is_full(const Buffer* buffer) const {
    std::vector<const Buffer*> bound{into_->buffer, buffer};
    for (const Input& input : inputs_) bound.push_back(input.rows.buffer);
    std::sort(bound.begin(), bound.end());
    const auto buffers = static_cast<uint32_t>(std::unique(bound.begin(), bound.end()) - bound.begin());
    return inputs_.size() == kMaxJoined ||
           buffers > std::min(kMaxBindings, runtime().device.limits.maxStorageBuffersPerShaderStage);
  }

  // The widest unit that all rows begin and end at a multiple of.
  int64_t unit_bytes() const {
    int64_t unit = 16;
    const auto align = [&](int64_t elements) {
      while (elements * element_bytes_ % unit != 0) unit /= 2;
    };
    align(into_->offset);
    align(begin_ * inner_);
    if (rows_ > 1) align(into_->stride);
    for (const Input& input : inputs_) {
      align(input.rows.offset);
      align(input.rows.length);
      if (rows_ > 1) align(input.rows.stride);
    }
    return unit;
  }

  void launch() {
    const int64_t unit = unit_bytes();
    const bool is_packed = unit < 4;
    // Words that several rows share have one owner only where the rows follow each other.
    if (is_packed && rows_ > 1 && into_->stride != into_->length) {
      for (const Input& input : inputs_) input.target.copy_(input.tensor);
      return;
    }
    const auto units = [&](int64_t elements) { return static_cast<uint32_t>(elements * element_bytes_ / unit); };
    JoinSpec spec{};
    spec.count = inputs_.size();
    spec.unit_bytes = unit;
    Launch launch;
    uint32_t* params = launch.params;
    bind(launch, into_->buffer);
    int64_t width = 0;
    for (uint32_t i = 0; i < spec.count; ++i) {
      const Rows& rows = inputs_[i].rows;
      spec.bindings[i] = bind(launch, rows.buffer);
      width += rows.length;
      params[JoinParams::offset(i)] = units(rows.offset);
      params[JoinParams::stride(i)] = units(rows.stride);
      params[JoinParams::end(i)] = units(width);
    }
    const int64_t elements = rows_ * into_->length, per_word = 4 / unit;
    const int64_t steps = is_packed ? (units(elements) + units(into_->offset) % per_word + per_word - 1) / per_word
                                    : rows_ * units(width);
    TORCH_CHECK(elements < (int64_t{1} << 32), "webgpu: cat: more than 2^32 elements");
    const auto [groups, chunk] = chunks_of(steps, target().workgroup);
    params[JoinParams::kSteps] = steps;
    params[JoinParams::kChunk] = chunk;
    params[JoinParams::kWidth] = units(width);
    params[JoinParams::kBegin] = units(begin_ * inner_);
    params[JoinParams::kOffset] = units(into_->offset);
    params[JoinParams::kStride] = units(into_->stride);
    params[JoinParams::kElements] = units(elements);
    launch.param_words = JoinParams::offset(spec.count);
    launch.bytes = 2 * rows_ * width * element_bytes_;
    launch.grid[0] = groups;
    set_key(launch, Family::join, spec);
    launch.print = &print;
    runtime().stream.dispatch(launch);
  }

  const std::vector<int64_t> order_;
  const at::Tensor out_;
  const int64_t dim_, element_bytes_;
  const std::optional<Rows> into_;
  int64_t rows_ = 1, inner_ = 1, filled_ = 0, begin_ = 0;
  std::vector<Input> inputs_;
};

struct Cat {
  using Op = Structured<at::meta::structured_cat>;
  static void run(Op& op, const at::ITensorListRef& tensors, int64_t dim) {
    const at::Tensor& out = op.outputs[0];
    if (op.form == Form::out) own_memory(out);
    const auto found = op.meta(tensors, dim);
    if (op.form == Form::out) {
      at::assert_no_internal_overlap(out);
      for (const at::Tensor& tensor : tensors) at::assert_no_overlap(out, tensor);
    }
    if (out.numel() == 0) return;
    Join join(out, found.dim);
    for (const at::Tensor& tensor : tensors) {
      if (tensor.numel() > 0) join.add(tensor);  // an empty one may be of any rank, by an old custom
    }
    join.flush();
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&Forms<Cat>::functional, kAny>(library, "cat");
  native<&Forms<Cat>::out, kAny>(library, "cat.out");
}

}  // namespace
}  // namespace torch_webgpu
