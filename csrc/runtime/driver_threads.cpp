#include "runtime/driver_threads.h"

#include <cstdlib>
#include <string_view>

#include "runtime/system.h"

namespace torch_webgpu {

void spread_driver_threads() {
  const char* wanted = std::getenv("TORCH_WEBGPU_PIN");
  if (wanted && std::string_view(wanted) == "0") return;
  const auto cores = cores_of_this_process();
  const auto threads = threads_of_this_process();
  // llvmpipe starts the threads that rasterize, which have a name, and right after them as many that run kernels.
  size_t named = 0;
  for (size_t i = 0; i < threads.size(); ++i) {
    if (name_of_thread(threads[i]).rfind("llvmpipe-", 0) == 0) {
      ++named;
      continue;
    }
    if (named > 1 && named == cores.size() && i + named <= threads.size()) {
      for (size_t n = 0; n < named; ++n) pin_thread(threads[i + n], cores[n]);
    }
    named = 0;
  }
}

}  // namespace torch_webgpu
