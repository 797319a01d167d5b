// Prints a kernel that is a plain file of wgsl/ with `fn run(task: u32)`, or `fn run(task: u32, lane: u32)` where a
// workgroup works on a task together: its operands become load_<name> and store_<name>, its parameters functions.
#pragma once
#include <cstdint>
#include <string>

#include "shader/dtype.h"
#include "shader/source.h"

namespace torch_webgpu {

// Operands are words separated by spaces, `<kind>:<name>`, with a `!` behind those that are written. Kinds: T converts
// to the compute type, u are the words of an int32 tensor, i the low words of an int64 tensor, a atomic words with
// add_<name> and or_<name>. An operand that a launch leaves out loads zeros and stores nothing. Texts are in functions
// that exist for every type (see specialise).
struct Program {
  const char* name;
  const char* file;
  const char* operands;
  const char* params;
  const char* text = "";
  const char* library = nullptr;              // further files below wgsl/, by spaces
  uint8_t written = 0, quads = 0, pairs = 0;  // a bit per operand
  // A workgroup takes a task, not an invocation, and the file orders its own loads and stores: operands that share a
  // buffer stay in it.
  bool grouped = false;
  uint16_t lanes = 0;  // of a grouped program's workgroup; 0: as many as the adapter's other kernels have
};

constexpr Program make_program(const char* name, const char* file, const char* operands, const char* params,
                               const char* text = "", const char* library = nullptr) {
  Program program{name, file, operands, params, text, library};
  uint32_t operand = 0;
  for (const char* at = operands; *at; ++at) {
    if (*at == ' ') ++operand;
    if (*at == '!') program.written |= 1u << operand;
    if (at[0] == 'q' && at[1] == ':') program.quads |= 1u << operand;
    if (at[0] == 'w' && at[1] == ':') program.pairs |= 1u << operand;
  }
  return program;
}

constexpr Program make_grouped(Program program, uint16_t lanes = 0) {
  program.grouped = true;
  program.lanes = lanes;
  return program;
}

constexpr uint32_t kProgramOperands = 8;

struct ProgramSpec {
  const Program* program;
  struct {
    uint8_t dtype : 4;
    uint8_t binding : 4;
  } operands[kProgramOperands];
  uint8_t compute;  // Compute
  uint8_t unused[3];
  uint32_t variant;  // VARIANT in the file
};
static_assert(sizeof(ProgramSpec) == 24);

constexpr uint32_t kAbsent = 15;  // the binding of an operand that was left out

// Where things are in the parameters, in words: tasks and tasks per workgroup, each operand's offset, then the names.
struct ProgramParams {
  static constexpr uint32_t kTasks = 0, kChunk = 1, kOffsets = 2, kNamed = kOffsets + kProgramOperands;
};

std::string print_program(const ProgramSpec& spec, const Target& target, Pages pages = {});
std::string label_program(const ProgramSpec& spec);

}  // namespace torch_webgpu
