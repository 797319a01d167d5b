// Horizontal fusion: launches of a tape that do not depend on one another become one launch, whose workgroups are
// shared out among them. What a small launch costs is mostly the launch itself.
#pragma once
#include <memory>

#include "runtime/gathering.h"
#include "runtime/kernel_text.h"
#include "runtime/tape.h"

namespace torch_webgpu {

// The text of a launch's kernel; null for one that cannot become a part.
std::shared_ptr<const KernelText> text_of(const Launch& launch);

// Whether a step may share a launch with others. Those of many workgroups fill the device by themselves.
bool may_be_part(const Tape& tape, uint32_t step, const Device& device);
// How many buffers a launch binds at most.
uint32_t bindings_of(const Device& device);

// Changes the order of the tape's steps, and fuses those that may run side by side. `gathered` are slots that lie in
// segments whenever the tape is replayed, those of worth_gathering().
void fuse_horizontally(Tape& tape, KernelCache& kernels, const Device& device, const Gathered& gathered = {});

}  // namespace torch_webgpu
