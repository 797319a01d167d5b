// Shared by the launchers of products and attention: passing each element to a WGSL text of the caller's.
#pragma once
#include <vector>

#include "families/custom.h"
#include "shader/epilogue.h"

namespace torch_webgpu {

// Binds the kernel's operands, for reading, and then the epilogue's tensors, of which `read_only` has a bit each.
class EpilogueBinder {
 public:
  EpilogueBinder(const EpilogueText& text, at::TensorList operands, at::TensorList tensors, uint32_t read_only)
      : text_(text), first_(operands.size()), tensors_(operands.vec()), pages_(first_, 1) {
    TORCH_CHECK_VALUE(tensors.size() == text.pages.size(), text.label, ": takes ", text.pages.size(), " tensors, but ",
                      tensors.size(), " were given");
    tensors_.insert(tensors_.end(), tensors.begin(), tensors.end());
    pages_.insert(pages_.end(), text.pages.begin(), text.pages.end());
    binder_.emplace(text_.label, tensors_, read_only << first_ | ((1u << first_) - 1), Places::offsets, pages_);
  }
  void bind(Launch& launch) { binder_->bind(launch); }
  uint32_t offset(uint32_t operand) const { return binder_->offsets()[operand]; }

  // The parameters behind the kernel's own, which end before `first_word`.
  void pass(Launch& launch, at::ArrayRef<uint32_t> words, uint32_t first_word = kEpilogueWords) const {
    const auto& offsets = binder_->offsets();
    TORCH_CHECK_VALUE(first_word + offsets.size() + words.size() <= kParamWords, text_.label, ": too many parameters");
    uint32_t* next =
        std::copy(offsets.begin() + static_cast<int64_t>(first_), offsets.end(), &launch.params[first_word]);
    next = std::copy(words.begin(), words.end(), next);
    launch.param_words = static_cast<uint32_t>(next - launch.params);
  }
  void copy_back() { binder_->copy_back(); }

 private:
  const EpilogueText& text_;
  const size_t first_;  // of the epilogue's tensors
  std::vector<at::Tensor> tensors_;
  TensorPages pages_;
  std::optional<TensorBinder> binder_;
};

}  // namespace torch_webgpu
