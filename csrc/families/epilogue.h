// Shared by the launchers of products: passing each element to a WGSL text of the caller's.
#pragma once
#include <vector>

#include "families/custom.h"
#include "shader/epilogue.h"

namespace torch_webgpu {

// Binds the kernel's two operands and then the epilogue's tensors, of which `read_only` has a bit each.
class EpilogueBinder {
 public:
  EpilogueBinder(const EpilogueText& text, const at::Tensor& first, const at::Tensor& second, at::TensorList tensors,
                 uint32_t read_only)
      : text_(text), tensors_{first, second} {
    tensors_.insert(tensors_.end(), tensors.begin(), tensors.end());
    binder_.emplace(text_.label, tensors_, read_only << kEpilogueBindings | 0b11, Places::offsets);
  }
  void bind(Launch& launch) { binder_->bind(launch); }
  uint32_t offset(uint32_t operand) const { return binder_->offsets()[operand]; }

  // The parameters behind the kernel's own, which end before word kEpilogueWords.
  void pass(Launch& launch, at::ArrayRef<uint32_t> words) const {
    const auto& offsets = binder_->offsets();
    TORCH_CHECK_VALUE(kEpilogueWords + offsets.size() + words.size() <= kParamWords, text_.label,
                      ": too many parameters");
    uint32_t* next = std::copy(offsets.begin() + kEpilogueBindings, offsets.end(), &launch.params[kEpilogueWords]);
    next = std::copy(words.begin(), words.end(), next);
    launch.param_words = static_cast<uint32_t>(next - launch.params);
  }
  void copy_back() { binder_->copy_back(); }

 private:
  const EpilogueText& text_;
  std::vector<at::Tensor> tensors_;
  std::optional<TensorBinder> binder_;
};

}  // namespace torch_webgpu
