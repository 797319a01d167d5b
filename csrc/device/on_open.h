// What is called once, by the thread that opened the device and before it goes on.
#pragma once

namespace torch_webgpu {

void on_open(void (*call)());

}  // namespace torch_webgpu
