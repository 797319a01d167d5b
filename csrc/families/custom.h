// Kernels whose text comes from outside: from torch.webgpu.compile_shader and from torch.compile.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "runtime/launch.h"

namespace torch_webgpu {

// How many bindings a kernel has for each of its tensors, the pages of what one binding cannot hold. Empty: one each.
using TensorPages = std::vector<uint8_t>;

struct CustomKernel {
  KernelSource source;
  Signature signature;
  KernelKey key;
  TensorPages pages;
  uint32_t read_only;  // a bit for each tensor, where the signature has one for each binding
};

// One kernel per text, entry point and signature; it lives as long as the process. Worker threads compile it meanwhile.
// The signature's bindings are tensors, some of which have several `pages`.
const CustomKernel& custom_kernel(KernelSource source, Signature signature, TensorPages pages = {});

// Waits for it, and raises what is wrong with it.
void finish(const CustomKernel& kernel);

enum class Places {
  offsets,   // a binding is the tensor's whole buffer; the parameters begin with each tensor's offset in elements
  bindings,  // a binding begins at the tensor's first element and ends behind its last
};

// Binds tensors in order. A tensor that shares its buffer with one that is written, or that lies where no binding can
// begin, is bound as a copy, which is copied back if the kernel writes it.
class TensorBinder {
 public:
  TensorBinder(const std::string& label, at::TensorList tensors, uint32_t read_only, Places places,
               at::ArrayRef<uint8_t> pages = {});
  void bind(Launch& launch);
  void copy_back();  // after the dispatch: what the kernel wrote to copies goes to the tensors
  const c10::SmallVector<uint32_t, 16>& offsets() const { return offsets_; }  // in the bindings, in elements

 private:
  bool writes(size_t index) const { return !(read_only_ >> index & 1); }
  bool shares_with_written(size_t index) const;
  void bind(Launch& launch, size_t index);
  void bind(Launch& launch, size_t index, const at::Tensor& storage, uint64_t begin, uint64_t end);
  void bind_pages(Launch& launch, size_t index, const Buffer& buffer, uint64_t begin, uint64_t end);
  uint32_t pages_of(size_t index) const { return pages_.empty() ? 1 : pages_[index]; }

  const std::string& label_;
  at::TensorList tensors_;
  const uint32_t read_only_;
  const Places places_;
  const at::ArrayRef<uint8_t> pages_;
  const uint64_t limit_;
  c10::SmallVector<uint32_t, 16> offsets_;
  std::vector<at::Tensor> copies_;
  std::vector<std::pair<at::Tensor, size_t>> written_copies_;
};

void launch_custom(const CustomKernel& kernel, at::TensorList tensors, at::ArrayRef<uint32_t> words,
                   const std::array<uint32_t, 3>& grid, Places places);

}  // namespace torch_webgpu
