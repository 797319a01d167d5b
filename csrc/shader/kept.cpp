#include "shader/kept.h"

#include <functional>

namespace torch_webgpu {
namespace {

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

std::string variable(const KeptValue& value) { return "kept_" + value.name; }

// The values of one block, each behind a comma.
std::string values_at(const std::vector<KeptValue>& values, uint32_t block) {
  std::string text;
  for (const KeptValue& value : values) {
    text += ", " + (value.absent.empty() ? variable(value) + "[" + number(block) + "]" : value.absent);
  }
  return text;
}

// Statements for the block `n`, found by halving.
std::string choose(uint32_t begin, uint32_t end, const std::function<std::string(uint32_t)>& statement) {
  if (end - begin == 1) return statement(begin);
  const uint32_t middle = (begin + end) / 2;
  return "if (n < " + number(middle) + ") { " + choose(begin, middle, statement) + " } else { " +
         choose(middle, end, statement) + " }\n";
}

}  // namespace

void use_kept(ShaderSource& source, Keep keep) {
  source.use("kept");
  source.print(std::string("const WHOLE = ") + (keep.cut ? "false" : "true") + ";\n");
}

void print_keep(ShaderSource& source, Keep keep, const std::string& group, const std::vector<KeptValue>& values) {
  std::string arguments;
  bool any = false;
  for (const KeptValue& value : values) {
    arguments += ", " + value.name + ": " + value.type;
    if (!value.absent.empty()) continue;
    any = true;
    source.print("var<private> " + variable(value) + ": array<" + value.type + ", " + number(keep.blocks) + ">;\n");
  }
  source.print("fn keep_" + group + "(n: u32" + arguments + ") {\n");
  if (any) {
    source.print(choose(0, keep.blocks, [&](uint32_t block) {
      std::string text;
      for (const KeptValue& value : values) {
        if (value.absent.empty()) text += variable(value) + "[" + number(block) + "] = " + value.name + "; ";
      }
      return text;
    }));
  }
  source.print("}\n");
}

void print_fold_kept(ShaderSource& source, Keep keep, const std::vector<KeptValue>& values) {
  source.print("fn fold_kept(known: Known) -> Sums {\n  var p = no_sums();\n");
  for (uint32_t block = 0; block < keep.blocks; ++block) {
    source.print("  p = fold(p, known, " + number(block) + values_at(values, block) + ");\n");
  }
  source.print("  return p;\n}\n");
}

void print_result_kept(ShaderSource& source, Keep keep, const std::vector<KeptValue>& values) {
  source.print("fn result_kept(n: u32, known: Known) -> Pair {\n  var v: Pair;\n");
  source.print(choose(0, keep.blocks,
                      [&](uint32_t block) { return "v = result_pair(known" + values_at(values, block) + ");"; }));
  source.print("  return v;\n}\n");
}

}  // namespace torch_webgpu
