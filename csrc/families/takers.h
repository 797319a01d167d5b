// Who takes a row in kernels that walk over rows, and the choice among those that can.
#pragma once
#include <c10/util/SmallVector.h>

#include <algorithm>

#include "families/choices.h"

namespace torch_webgpu {

enum class Taker : uint8_t {
  keeper,     // a workgroup that keeps the row in registers
  team,       // some lanes of a workgroup
  workgroup,  // all lanes
  invocation  // one lane
};
using Takers = c10::SmallVector<Taker, 4>;  // that can take the rows, the usual one first

// The one that was measured for rows like these, if it can take them. `contest` leaves the kernels to be filled in.
inline Taker choose_by_time(const ChoiceKey& key, const Takers& takers, int64_t elements,
                            c10::function_ref<Contest()> contest) {
  constexpr const char* kNames[] = {"kept", "team", "workgroup", "invocation"};
  constexpr int64_t kWorkOfElement = 16;  // multiply-adds that take as long
  const auto of_takers = [&] {
    Contest filled = contest();
    for (const Taker taker : takers) {
      filled.kernels.push_back({static_cast<int64_t>(taker), kNames[static_cast<size_t>(taker)]});
    }
    filled.reference = static_cast<int64_t>(Taker::invocation);
    return filled;
  };
  const auto taker = static_cast<Taker>(
      choose_measured(key.value(), static_cast<int64_t>(takers.front()), kWorkOfElement * elements, of_takers));
  return std::find(takers.begin(), takers.end(), taker) == takers.end() ? takers.front() : taker;
}

}  // namespace torch_webgpu
