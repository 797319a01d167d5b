// Horizontal fusion: launches of a tape that do not depend on one another become one launch, whose workgroups are
// shared out among them. What a small launch costs is mostly the launch itself.
#pragma once
#include <memory>

#include "runtime/kernel_text.h"
#include "runtime/tape.h"

namespace torch_webgpu {

// The text of a launch's kernel; null for one that cannot become a part.
std::shared_ptr<const KernelText> text_of(const Launch& launch);

// Changes the order of the tape's steps, and fuses those that may run side by side.
void fuse_horizontally(Tape& tape, KernelCache& kernels, const Device& device);

}  // namespace torch_webgpu
