#include "shader/matmul.h"

#include <algorithm>

#include "shader/matmul_tile.h"
#include "shader/memory.h"

namespace torch_webgpu {
namespace {

const char* const kNames[] = {"out", "a", "b", "c"};

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

class Printer {
 public:
  Printer(const MatmulSpec& spec, const Target& target)
      : spec_(spec),
        source_(target),
        target_(target),
        kernel_(static_cast<MatmulKernel>(spec.kernel)),
        compute_(static_cast<Compute>(spec.compute)),
        operands_(spec.epilogue->adds ? 4 : 3),
        text_(spec.epilogue->text),
        first_(text_ ? 1 : 0) {}

  std::string print() {
    uint32_t bindings = 1;
    for (uint32_t i = 1; i < operands_; ++i) bindings = std::max<uint32_t>(bindings, spec_.binding[i] + 1);
    for (uint32_t i = 0; i < bindings; ++i) source_.bind(i, element(i));
    source_.use(compute_);
    for (uint32_t i = first_; i < operands_; ++i) source_.use(compute_type(dtype(i)));
    if (spec_.epilogue->library) source_.use(spec_.epilogue->library);
    source_.print(std::string("alias T = ") + wgsl_type(compute_) + ";\nconst LINES = " + number(spec_.lines) + ";\n");
    for (const auto& [name, word] : {std::pair{"rows", MatmulParams::kRows},
                                     {"columns", MatmulParams::kColumns},
                                     {"depth", MatmulParams::kDepth},
                                     {"batches", MatmulParams::kBatches},
                                     {"chunk", MatmulParams::kChunk}}) {
      source_.print(std::string("fn ") + name + "() -> u32 { return " + param(word) + "; }\n");
    }
    for (uint32_t i = first_; i < operands_; ++i) print_place(i);
    if (text_) {
      print_epilogue();
    } else {
      if (operands_ == 4) print_element(3);
      print_finish();
      print_store();
    }
    print_kernel();
    return source_.text();
  }

 private:
  // Whether the kernel stores four neighbours at once.
  bool stores_fours() const {
    return kernel_ == MatmulKernel::subgroup || kernel_ == MatmulKernel::tiled || kernel_ == MatmulKernel::join ||
           (kernel_ == MatmulKernel::thin && walk(2) == Walk::across);
  }

  static bool in_quads(Walk walk) { return walk == Walk::along || walk == Walk::across; }

  DType dtype(uint32_t operand) const { return static_cast<DType>(spec_.dtype[operand]); }
  uint32_t bytes(uint32_t operand) const { return size_bytes(dtype(operand)); }
  Walk walk(uint32_t operand) const { return static_cast<Walk>(spec_.walk[operand]); }

  // Operands that share a buffer and are loaded in fours are of one dtype.
  std::string element(uint32_t binding) const {
    for (uint32_t i = first_; i < operands_; ++i) {
      if (spec_.binding[i] == binding && (i < 3 && i > 0 ? in_quads(walk(i)) : walk(i) == Walk::across))
        return array_of_quads(bytes(i));
    }
    return binding == 0 && bytes(0) < 4 && !text_ ? "atomic<u32>" : "u32";
  }

  // The stride from step to step, in what is loaded at once where a function of it counts in that.
  std::string step(uint32_t operand) const {
    const std::string stride = param(MatmulParams::offset(operand) + 3);
    return walk(operand) == Walk::across ? stride + " >> 2u" : stride;
  }
  MatmulSide side(uint32_t operand) const {
    return {kNames[operand][0], operand == 1 ? "rows" : "columns",       dtype(operand), walk(operand),
            memory(operand),    param(MatmulParams::offset(operand) + 3)};
  }

  Memory memory(uint32_t operand) const {
    const uint32_t binding = operand == 0 ? 0 : spec_.binding[operand];
    return {"m" + std::to_string(binding), bytes(operand), element(binding)};
  }

  // The element at `at`.
  std::string loaded(uint32_t operand) const { return from_raw(dtype(operand), compute_, memory(operand).load("at")); }

  void print_place(uint32_t operand) {
    const uint32_t at = MatmulParams::offset(operand);
    source_.print("fn at_" + std::string(kNames[operand]) + "(batch: u32, i: u32, j: u32) -> u32 {\n  return " +
                  param(at) + " + batch * " + param(at + 1) + " + i * " + param(at + 2) + " + j * " + param(at + 3) +
                  ";\n}\n");
  }

  void print_element(uint32_t operand) {
    const std::string name = kNames[operand];
    source_.print("fn load_" + name + "(batch: u32, i: u32, j: u32) -> T {\n  let at = at_" + name +
                  "(batch, i, j);\n  return " + loaded(operand) + ";\n}\n");
  }

  // Four steps from 4 * k of four lines from `line` on, one line per column of the matrix. Lines beyond the last are
  // the last again, steps beyond the last are 0.
  void print_lines(uint32_t operand, const char* lines) {
    const std::string name = kNames[operand];
    const uint32_t at = MatmulParams::offset(operand);
    const bool across = walk(operand) == Walk::across;
    source_.print("fn lines_" + name + "(batch: u32, line: u32) -> Lines {\n  let last = " + lines +
                  "() - 1u;\n  return Lines(");
    if (across) {
      source_.print("vec4<u32>(at_" + name + "(batch, min(line, last & ~3u), 0u) >> 2u), " + param(at + 3) + " >> 2u");
    } else {
      source_.print("vec4<u32>(");
      for (uint32_t i = 0; i < 4; ++i) {
        source_.print((i ? ", at_" : "at_") + name + "(batch, min(line + " + number(i) + ", last), 0u)");
      }
      source_.print(walk(operand) == Walk::along ? ") >> vec4<u32>(2u), 1u" : "), " + param(at + 3));
    }
    source_.print(", depth());\n}\n");
    print_four(operand);
    source_.print("fn load_" + name + "(p: Lines, k: u32) -> mat4x4<f32> {\n  return " +
                  (across ? "transpose(mat4x4<f32>(" : "mat4x4<f32>("));
    for (uint32_t i = 0; i < 4; ++i) {
      if (i) source_.print(", ");
      source_.print("four_" + name + "(p.at.");
      source_.print(across ? "x, p.by, 4u * k + " + number(i) + ", p.depth)"
                           : std::string(1, "xyzw"[i]).append(", p.by, k, p.depth)"));
    }
    source_.print(across ? "));\n}\n" : ");\n}\n");
  }

  // Four steps of one line, from 4 * k on; or the step k of four lines.
  void print_four(uint32_t operand) {
    const std::string name = kNames[operand];
    const bool across = walk(operand) == Walk::across;
    source_.print("fn four_" + name + "(place: u32, by: u32, k: u32, depth: u32) -> vec4<f32> {\n");
    const std::string four = "vec4<u32>(0u, 1u, 2u, 3u)";
    if (walk(operand) == Walk::elements) {
      source_.print("  var v = vec4<f32>();\n  var at = place + 4u * k * by;\n");
      for (uint32_t i = 0; i < 4; ++i) {
        const std::string line = std::string("v.") + "xyzw"[i] + " = " + loaded(operand) + ";";
        source_.print(spec_.ragged && i ? "  if (4u * k + " + number(i) + " < depth) { " + line + " }\n"
                                        : "  " + line + "\n");
        if (i < 3) source_.print("  at += by;\n");
      }
      source_.print("  return v;\n}\n");
    } else if (across) {  // here k is the one step
      source_.print(memory(operand).load_quad("q", "place + k * by"));
      source_.print(spec_.ragged
                        ? "  return select(vec4<f32>(), " + floats_of_quad(dtype(operand), "q") + ", k < depth);\n}\n"
                        : "  return " + floats_of_quad(dtype(operand), "q") + ";\n}\n");
    } else {
      source_.print(memory(operand).load_quad("q", "place + k"));
      source_.print(spec_.ragged ? "  return select(vec4<f32>(), " + floats_of_quad(dtype(operand), "q") +
                                       ", 4u * k + " + four + " < vec4<u32>(depth));\n}\n"
                                 : "  return " + floats_of_quad(dtype(operand), "q") + ";\n}\n");
    }
  }

  void print_finish() {
    source_.print(
        "fn finish_with(c: T, product: T) -> T {\n  let s0 = " + param_value(compute_, MatmulParams::kScalars) +
        ";\n  let s1 = " + param_value(compute_, MatmulParams::kScalars + 2) + ";\n  return " +
        specialise(spec_.epilogue->formula, compute_) + ";\n}\n");
    source_.print(
        std::string("fn finish(batch: u32, row: u32, column: u32, product: T) -> T {\n  return finish_with(") +
        (operands_ == 4 ? "load_c(batch, row, column)" : "T()") + ", product);\n}\n");
    if (stores_fours()) print_four_of_c();
  }

  // The elements of c for four results in a row.
  void print_four_of_c() {
    source_.print(std::string("const SAME_C = ") + (spec_.same_c ? "true" : "false") +
                  ";\nfn four_of_c(batch: u32, row: u32, column: u32) -> vec4<f32> {\n");
    if (operands_ < 4) {
      source_.print("  return vec4<f32>();\n}\n");
    } else if (walk(3) == Walk::along) {
      source_.print("  return vec4<f32>(load_c(batch, row, column));\n}\n");
    } else if (walk(3) == Walk::across) {
      source_.print(memory(3).load_quad("q", "at_c(batch, row, column) >> 2u") + "  return " +
                    floats_of_quad(dtype(3), "q") + ";\n}\n");
    } else {
      source_.print(
          "  return vec4<f32>(load_c(batch, row, column), load_c(batch, row, column + 1u), "
          "load_c(batch, row, column + 2u),\n      load_c(batch, row, column + 3u));\n}\n");
    }
  }

  void print_epilogue() {
    for (const auto& file : text_->files) source_.use(file);
    source_.print("fn index_of(batch: u32, row: u32, column: u32) -> u32 {\n  return ");
    source_.print(spec_.transposed ? "(batch * columns() + column) * rows() + row"
                                   : "(batch * rows() + row) * columns() + column");
    source_.print(";\n}\n");
    if (walk(0) == Walk::across) {
      source_.print(text_->fours +
                    "\nfn store_four(batch: u32, row: u32, column: u32, product: vec4<f32>, c: vec4<f32>) {\n"
                    "  if (column < columns()) { epilogue_four(index_of(batch, row, column), product); }\n}\n");
    } else {
      source_.print(text_->elements +
                    "\nfn store(batch: u32, row: u32, column: u32, product: T) {\n"
                    "  epilogue(index_of(batch, row, column), product);\n}\n"
                    "fn store_four(batch: u32, row: u32, column: u32, product: vec4<f32>, c: vec4<f32>) {\n"
                    "  for (var i = 0u; i < min(4u, columns() - min(column, columns())); i++) {\n"
                    "    store(batch, row, column + i, product[i]);\n  }\n}\n");
    }
    source_.print(
        "const SAME_C = true;\n"
        "fn four_of_c(batch: u32, row: u32, column: u32) -> vec4<f32> { return vec4<f32>(); }\n");
  }

  void print_store() {
    const std::string value = to_raw(dtype(0), compute_, "value");
    source_.print("fn raw(value: T) -> " + std::string(bytes(0) == 8 ? "vec2<u32>" : "u32") + " { return " + value +
                  "; }\n");
    if (walk(0) == Walk::across && (kernel_ == MatmulKernel::tiled || kernel_ == MatmulKernel::join)) {
      source_.use("halves");
      source_.print(
          "fn store_four(batch: u32, row: u32, column: u32, product: vec4<f32>, c: vec4<f32>) {\n"
          "  if (column >= columns()) { return; }\n  let at = at_out(batch, row, column) >> 2u;\n"
          "  let value = vec4<f32>(finish_with(c.x, product.x), finish_with(c.y, product.y), "
          "finish_with(c.z, product.z),\n      finish_with(c.w, product.w));\n  " +
          memory(0).assign("at", packed_quad_of_floats(dtype(0), "value")) + "\n}\n");
      return;
    }
    const auto finished = [](uint32_t i) {
      const std::string part = std::string(".") + "xyzw"[i];
      return "raw(finish_with(c" + part + ", product" + part + "))";
    };
    if (walk(0) == Walk::across) {
      source_.print(
          "fn store_four(batch: u32, row: u32, column: u32, product: vec4<f32>, c: vec4<f32>) {\n"
          "  if (column >= columns()) { return; }\n  let at = at_out(batch, row, column) >> 2u;\n" +
          memory(0).store_quad("at", {finished(0), finished(1), finished(2), finished(3)}) + "}\n");
      return;
    }
    source_.print(
        "fn store(batch: u32, row: u32, column: u32, product: T) {\n"
        "  put(at_out(batch, row, column), raw(finish(batch, row, column, product)));\n}\n"
        "fn put(at: u32, value: " +
        std::string(bytes(0) == 8 ? "vec2<u32>" : "u32") + ") {\n" + memory(0).store("at", "value") + "}\n");
    if (!stores_fours()) return;
    source_.print(
        "fn store_four(batch: u32, row: u32, column: u32, product: vec4<f32>, c: vec4<f32>) {\n"
        "  for (var i = 0u; i < min(4u, columns() - min(column, columns())); i++) {\n"
        "    put(at_out(batch, row, column + i), raw(finish_with(c[i], product[i])));\n  }\n}\n");
  }

  void print_kernel() {
    const auto workgroup = [&](uint32_t lanes) { source_.print("const WORKGROUP = " + number(lanes) + ";\n"); };
    switch (kernel_) {
      case MatmulKernel::tile:
      case MatmulKernel::shared:
        print_element(1);
        print_element(2);
        source_.print("fn mul_add(a: T, b: T, c: T) -> T { return " + specialise("mul_add(a, b, c)", compute_) +
                      "; }\n");
        if (kernel_ == MatmulKernel::tile) {
          workgroup(target_.workgroup);
          source_.use("matmul");
        } else {
          workgroup(kMatmulSharedLanes);
          for (uint32_t i = 1; i < 3; ++i) {
            source_.print(std::string("fn step_") + kNames[i] + "() -> u32 { return " +
                          param(MatmulParams::offset(i) + 3) + "; }\n");
          }
          source_.use("matmul_shared");
        }
        return;
      case MatmulKernel::subgroup:
        workgroup(kMatmulSubgroup);
        print_lines(1, "rows");
        print_lines(2, "columns");
        source_.use_subgroups();
        source_.use("matmul_lines");
        source_.use("matmul_subgroup");
        return;
      case MatmulKernel::tiled: source_.print(print_matmul_tile(kMatmulTiles[spec_.lines], side(1), side(2))); return;
      case MatmulKernel::thin: {
        for (uint32_t i = 1; i < 3; ++i) {
          print_four(i);
          source_.print(std::string("fn step_") + kNames[i] + "() -> u32 { return " + step(i) + "; }\n");
        }
        source_.print(walk(2) == Walk::across
                          ? print_matmul_thin_across(spec_.lines, in_quads(walk(1)))
                          : print_matmul_thin_along(spec_.lines, in_quads(walk(1)), in_quads(walk(2))));
        return;
      }
      case MatmulKernel::join: source_.print(print_matmul_join(side(1), walk(1) == Walk::along)); return;
      case MatmulKernel::vector: {
        const bool by_subgroup = target_.subgroup == target_.workgroup;
        workgroup(target_.workgroup);
        print_lines(1, "rows");
        print_lines(2, "columns");
        if (by_subgroup) source_.use_subgroups();
        source_.use("matmul_lines");
        source_.use("matmul_vector");
        source_.use(by_subgroup ? "matmul_vector_subgroup" : "matmul_vector_group");
        return;
      }
    }
  }

  const MatmulSpec& spec_;
  ShaderSource source_;
  const Target& target_;
  const MatmulKernel kernel_;
  const Compute compute_;
  const uint32_t operands_;
  const EpilogueText* const text_;
  const uint32_t first_;  // first operand that the printer handles
};

}  // namespace

std::string print_matmul(const MatmulSpec& spec, const Target& target) { return Printer(spec, target).print(); }

std::string label_matmul(const MatmulSpec& spec) {
  if (spec.epilogue->text) return spec.epilogue->text->label;
  const char* const kernels[] = {"tile", "shared", "subgroup", "vector", "tiled", "thin", "join"};
  std::string kernel = kernels[spec.kernel];
  if (spec.kernel == static_cast<uint8_t>(MatmulKernel::thin)) {
    const bool across = static_cast<Walk>(spec.walk[2]) == Walk::across;
    kernel += " " + std::to_string(spec.lines) + (across ? " across" : " along");
  }
  if (spec.kernel == static_cast<uint8_t>(MatmulKernel::tiled)) {
    const auto walk = [&](uint32_t operand) { return static_cast<Walk>(spec.walk[operand]); };
    const MatmulTile& tile = kMatmulTiles[spec.lines];
    const bool packed =
        stay_packed(tile, static_cast<DType>(spec.dtype[1]), walk(1), static_cast<DType>(spec.dtype[2]), walk(2));
    kernel = std::string(tile.name) + ", slices of " + std::to_string(packed ? tile.half_slice : tile.slice) + ", " +
             kWalkNames[spec.walk[1]] + " and " + kWalkNames[spec.walk[2]];
  }
  return "matmul " + kernel + spec.epilogue->name + " (" + name(static_cast<DType>(spec.dtype[1])) + ", " +
         name(static_cast<DType>(spec.dtype[2])) + ") -> " + name(static_cast<DType>(spec.dtype[0]));
}

}  // namespace torch_webgpu
