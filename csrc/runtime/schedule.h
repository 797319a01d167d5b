// The steps of a tape with what each has to wait for.
#pragma once
#include <cstdint>
#include <vector>

namespace torch_webgpu {

class Tape;

class Schedule {
 public:
  explicit Schedule(const Tape& tape);

  // The steps that nothing holds back: first those with the longest way to the end.
  const std::vector<uint32_t>& ready();
  void take(const std::vector<uint32_t>& steps);

  // How many steps stand one behind another in front of each.
  std::vector<uint32_t> depths() const;

 private:
  struct Node {
    std::vector<uint32_t> later;
    uint32_t waits_for = 0, height = 0;
  };
  void depend(uint32_t later, uint32_t earlier);

  std::vector<Node> nodes_;
  std::vector<uint32_t> ready_;
};

// Whether a step writes what it binds there, or may do so.
bool writes(const Tape& tape, uint32_t step, uint32_t binding);

}  // namespace torch_webgpu
