// The families of products: matrices, convolutions, attention.
#include <span>
#include <utility>

#include "kernels.h"
#include "shader/attention.h"
#include "shader/convolution.h"
#include "shader/matmul.h"
#include "shader/matmul_tile.h"

namespace torch_webgpu::test {
namespace {

constexpr Epilogue kProduct{"", "product"};
constexpr Epilogue kAdded{", added", "add(mul(s0, product), mul(s1, c))", true};
constexpr Epilogue kGelu{", gelu", "gelu(add(mul(s0, product), mul(s1, c)))", true, "activation"};
constexpr Walk kWalks[] = {Walk::elements, Walk::along, Walk::across};

const EpilogueText kText{"fused",
                         "@group(0) @binding(2) var<storage, read_write> fused: array<f32>;\n"
                         "fn epilogue(index: u32, product: f32) { fused[index] = exp_below(vec4<f32>(product)).x; }\n",
                         "@group(0) @binding(2) var<storage, read_write> fused: array<vec4<f32>>;\n"
                         "fn epilogue_four(index: u32, product: vec4<f32>) { fused[index / 4u] = product; }\n",
                         {"exp_below"},
                         {1},
                         1};
const Epilogue kFused{", fused", "product", false, nullptr, &kText};

class Products {
 public:
  Products(const Target& target, const Emit& emit) : target_(target), emit_(emit) {}

  // Element by element: any type that numbers are multiplied in.
  void by_elements(MatmulKernel kernel) {
    for (const DType dtype : kDTypes) {
      if (dtype == DType::boolean) continue;
      for (const Epilogue* epilogue : {&kProduct, &kAdded}) print(spec_of(kernel, dtype, *epilogue));
    }
    print(spec_of(kernel, DType::f32, kGelu));
    print(spec_of(kernel, DType::f32, kFused));
    MatmulSpec mixed = spec_of(kernel, DType::f32, kAdded);
    mixed.dtype[1] = number_of(DType::f16);
    mixed.binding[3] = 0;  // added in place
    print(mixed);
  }

  // Those for GPUs: every tile, and every way to load.
  void by_tiles() {
    constexpr Walk kAll[] = {Walk::elements, Walk::along, Walk::across, Walk::elements_across};
    for (const DType dtype : kFloats) {
      for (uint8_t tile = 0; tile < std::size(kMatmulTiles); ++tile) {
        for (const Walk a : kAll) {
          for (const Walk b : kAll) print_walks(MatmulKernel::tiled, dtype, tile, a, b);
        }
      }
      for (const uint8_t rows : {1, 4, 16}) {
        for (const Walk a : {Walk::elements, Walk::along}) {
          for (const Walk b : kWalks) print_walks(MatmulKernel::thin, dtype, rows, a, b);
        }
      }
      for (const Walk parts : {Walk::elements, Walk::along}) {
        print_walks(MatmulKernel::join, dtype, 1, parts, parts);
      }
    }
  }

  void print_walks(MatmulKernel kernel, DType dtype, uint8_t lines, Walk a, Walk b) {
    const bool fours = kernel != MatmulKernel::thin || b == Walk::across;
    for (const Epilogue* epilogue : {&kProduct, &kAdded, &kFused}) {
      if (epilogue != &kProduct && a != b) continue;  // what is stored does not depend on what is loaded
      MatmulSpec spec = spec_of(kernel, dtype, *epilogue);
      if (kernel == MatmulKernel::join) spec.dtype[1] = spec.dtype[2] = number_of(DType::f32);
      spec.lines = lines;
      spec.walk[0] = static_cast<uint8_t>(fours && a != Walk::elements ? Walk::across : Walk::elements);
      spec.walk[1] = static_cast<uint8_t>(a);
      spec.walk[2] = static_cast<uint8_t>(b);
      spec.ragged = a != b;
      print(spec);
    }
  }

  // In quads where memory allows.
  void by_lines(MatmulKernel kernel, std::initializer_list<uint8_t> lines) {
    for (const DType dtype : kFloats) {
      MatmulSpec spec = spec_of(kernel, dtype, kProduct);
      for (const uint8_t count : lines) {
        spec.lines = count;
        for (const Walk a : kWalks) {
          for (const Walk b : kWalks) {
            if (a == Walk::across && (count != 4 || kernel == MatmulKernel::vector)) continue;
            if (b == Walk::across && kernel == MatmulKernel::vector) continue;
            spec.walk[1] = static_cast<uint8_t>(a);
            spec.walk[2] = static_cast<uint8_t>(b);
            spec.ragged = a != b || count == 4;
            print(spec);
          }
        }
      }
      stores(kernel, dtype);
    }
    for (const bool fours : kEither) {
      MatmulSpec spec = spec_of(kernel, DType::f32, kFused);
      spec.lines = 4;
      spec.walk[0] = static_cast<uint8_t>(fours && kernel != MatmulKernel::vector ? Walk::across : Walk::elements);
      spec.transposed = !fours;
      print(spec);
    }
  }

 private:
  static MatmulSpec spec_of(MatmulKernel kernel, DType dtype, const Epilogue& epilogue) {
    MatmulSpec spec{};
    spec.epilogue = &epilogue;
    spec.kernel = static_cast<uint8_t>(kernel);
    spec.compute = static_cast<uint8_t>(compute_type(dtype));
    spec.lines = 1;
    const bool fused = epilogue.text;
    for (uint8_t i = 0; i < 4; ++i) {
      spec.dtype[i] = number_of(dtype);
      spec.binding[i] = fused && i > 0 ? i - 1 : i;
    }
    return spec;
  }

  void stores(MatmulKernel kernel, DType dtype) {
    for (const Epilogue* epilogue : {&kProduct, &kAdded, &kGelu}) {
      for (const Walk out : {Walk::elements, Walk::across}) {
        for (const Walk c : kWalks) {
          MatmulSpec spec = spec_of(kernel, dtype, *epilogue);
          spec.lines = 4;
          spec.walk[1] = spec.walk[2] = static_cast<uint8_t>(Walk::along);
          if (kernel != MatmulKernel::vector) {
            spec.walk[0] = static_cast<uint8_t>(out);
            spec.walk[3] = static_cast<uint8_t>(epilogue->adds ? c : Walk::elements);
            spec.same_c = c == Walk::across;
          }
          print(spec);
        }
      }
    }
  }

  void print(const MatmulSpec& spec) { emit_(label_matmul(spec), print_matmul(spec, target_)); }

  const Target& target_;
  const Emit& emit_;
};

class Convolutions {
 public:
  Convolutions(const Target& target, const Emit& emit) : target_(target), emit_(emit) {}

  void tiles(ConvolutionForm form) {
    const bool exchanges = target_.subgroup == 8 && target_.workgroup == 8;
    for (const DType dtype : kFloats) {
      ConvolutionSpec spec = spec_of(form, DType::f32, dtype);
      for (const uint8_t rows : {4, 8, 16, 32}) {
        spec.rows = rows;
        spec.shared = exchanges && rows > 4;
        if (!spec.shared && rows > 8) continue;
        for (const bool packed : kEither) {
          if (packed && form == ConvolutionForm::weight) continue;
          spec.packed = packed;
          with_bias(spec);
          spec.has_gap = 1;
          print(spec);
          spec.has_gap = 0;
        }
        if (spec.shared && form == ConvolutionForm::output && rows <= 16) lines(spec);
      }
    }
  }

  // Those for GPUs: every way to load and to store.
  void by_tiles() {
    constexpr Walk kPixels[] = {Walk::along, Walk::elements_across}, kWeights[] = {Walk::along, Walk::across};
    constexpr Walk kAll[] = {Walk::elements, Walk::along, Walk::across, Walk::elements_across};
    for (const DType dtype : kFloats) {
      for (const Walk x : kPixels) {
        for (const Walk row : kWeights) tiled(ConvolutionForm::tiled_output, dtype, x, row);
      }
      for (const Walk x : {Walk::elements, Walk::across, Walk::elements_across}) {
        for (const Walk row : kAll) tiled(ConvolutionForm::tiled_weight, dtype, x, row);
      }
    }
  }

  void elements() {
    for (const DType dtype : kDTypes) {
      if (dtype == DType::boolean) continue;
      const DType out = compute_type(dtype) == Compute::i64   ? DType::i64
                        : compute_type(dtype) == Compute::i32 ? DType::i32
                                                              : DType::f32;
      with_bias(spec_of(ConvolutionForm::element, out, dtype));
    }
  }

 private:
  static ConvolutionSpec spec_of(ConvolutionForm form, DType out, DType dtype) {
    ConvolutionSpec spec{};
    spec.form = static_cast<uint8_t>(form);
    for (uint8_t i = 0; i < kConvolutionOperands; ++i) {
      spec.dtype[i] = number_of(i == kOut ? out : dtype);
      spec.binding[i] = i;
    }
    return spec;
  }

  void tiled(ConvolutionForm form, DType dtype, Walk x, Walk row) {
    const bool is_output = form == ConvolutionForm::tiled_output;
    ConvolutionSpec spec = spec_of(form, is_output ? dtype : DType::f32, dtype);
    spec.walk_x = static_cast<uint8_t>(x);
    spec.walk_row = static_cast<uint8_t>(row);
    for (const bool quads : kEither) {
      if (!quads && is_output && dtype != DType::f32) continue;
      spec.quads = quads;
      spec.rows = quads ? 1 : 0;
      spec.axes = quads ? 2 : 3;
      for (const bool turned : kEither) {
        spec.turned = turned;
        spec.whole = quads != turned;
        spec.has_gap = is_output && turned;
        is_output ? with_bias(spec) : print(spec);
      }
    }
  }

  void lines(ConvolutionSpec spec) {
    spec.packed = 1;
    spec.has_gap = 0;
    for (const uint8_t width : {2, 3, 5}) {
      spec.width = width;
      for (const uint8_t step : {1, 2}) {
        spec.step = step;
        for (const bool quads : kEither) {
          if (quads && spec.dtype[kX] != number_of(DType::f32)) continue;
          spec.quads = quads;
          spec.before = quads ? width / 2 : 0;
          step == 1 ? with_bias(spec) : print(spec);
        }
      }
    }
  }

  void with_bias(ConvolutionSpec spec) {
    print(spec);
    spec.has_bias = 1;
    print(spec);
    spec.has_bias = 0;
    const bool fuses = spec.form == static_cast<uint8_t>(ConvolutionForm::output) ||
                       spec.form == static_cast<uint8_t>(ConvolutionForm::tiled_output);
    if (!fuses || spec.dtype[kX] != number_of(DType::f32)) return;
    spec.epilogue = &kText;
    spec.binding[kX] = 0;
    spec.binding[kRow] = 1;
    print(spec);
  }

  void print(const ConvolutionSpec& spec) {
    emit_(label_convolution(spec), print_convolution(spec, target_));
    if (spec.epilogue || spec.rows > 8) return;
    emit_(label_convolution(spec), print_convolution(spec, target_, kInPages));
  }

  const Target& target_;
  const Emit& emit_;
};

using Operand = AttentionOperand;

constexpr Operand kForward[] = {Operand::query, Operand::key, Operand::value, Operand::out, Operand::log_sum};
constexpr Operand kCombine[] = {Operand::value, Operand::out, Operand::log_sum, Operand::part_log_sum};
constexpr Operand kQuery[] = {Operand::query, Operand::key,   Operand::value,   Operand::grad,
                              Operand::out,   Operand::first, Operand::log_sum, Operand::delta};
constexpr Operand kKey[] = {Operand::query, Operand::key,    Operand::value,   Operand::grad,
                            Operand::first, Operand::second, Operand::log_sum, Operand::delta};
constexpr Operand kMask[] = {Operand::query,   Operand::key,   Operand::value,    Operand::grad,
                             Operand::log_sum, Operand::delta, Operand::mask_grad};
constexpr std::pair<AttentionKind, std::span<const Operand>> kKinds[] = {{AttentionKind::forward, kForward},
                                                                         {AttentionKind::combine, kCombine},
                                                                         {AttentionKind::backward_query, kQuery},
                                                                         {AttentionKind::backward_key, kKey},
                                                                         {AttentionKind::backward_mask, kMask}};

// What flex_attention adds: lists of blocks in one binding, functions of a score.
const ScoreText kScores{
    "scores",
    "@group(0) @binding(0) var<storage, read> flex_list0: array<u32>;\n"
    "const LISTS = 4u;\n"
    "fn load_list(list: u32, i: u32) -> u32 { return flex_list0[i]; }\n"
    "fn flex_score(score: f32, b: i32, h: i32, m: i32, n: i32) -> f32 { return score + f32(n); }\n"
    "fn flex_visible(b: i32, h: i32, m: i32, n: i32) -> bool { return m >= n; }\n"
    "fn flex_slope(score: f32, b: i32, h: i32, m: i32, n: i32, slope: f32) -> f32 { return slope; }\n",
    {},
    1,
    1};

const EpilogueText kAttended{"fused",
                             "@group(0) @binding(0) var<storage, read_write> fused: array<f32>;\n"
                             "fn epilogue(index: u32, product: f32) { fused[index] = product; }\n",
                             "@group(0) @binding(0) var<storage, read_write> fused: array<vec4<f32>>;\n"
                             "fn epilogue_four(index: u32, product: vec4<f32>) { fused[index / 4u] = product; }\n",
                             {},
                             {1},
                             1};

AttentionSpec attention_of(AttentionKind kind, std::span<const Operand> operands, DType dtype, bool quads, bool mask,
                           uint8_t binding = 0) {
  AttentionSpec spec{};
  spec.kind = static_cast<uint8_t>(kind);
  spec.quads = quads;
  for (auto& operand : spec.operands) operand.binding = kAttentionAbsent;
  const auto add = [&](Operand operand, DType its) {
    spec.operands[static_cast<uint32_t>(operand)] = {static_cast<uint8_t>(number_of(its) & 15), binding++};
  };
  for (const Operand operand : operands) {
    // Without quads results are float32, and so are numbers per row and the parts that are combined.
    const bool result = operand == Operand::first || operand == Operand::second ||
                        (operand == Operand::out && kind != AttentionKind::backward_query),
               flat = static_cast<uint32_t>(operand) >= kAttentionWalked,
               part = kind == AttentionKind::combine && operand == Operand::value;
    add(operand, flat || part || (result && !quads) ? DType::f32 : dtype);
  }
  if (mask) add(Operand::mask, dtype);
  return spec;
}

bool takes_result(AttentionKind kind) { return kind == AttentionKind::forward || kind == AttentionKind::combine; }

// The same with an epilogue, which binds one tensor and takes the place of the result.
void print_with_epilogue(AttentionSpec spec, const Target& target, const Emit& emit) {
  auto& out = spec.operands[static_cast<uint32_t>(Operand::out)];
  for (auto& operand : spec.operands) {
    if (operand.binding != kAttentionAbsent && operand.binding < out.binding) ++operand.binding;
  }
  out.binding = kAttentionAbsent;
  spec.epilogue = static_cast<uint16_t>(kAttended.id);
  emit(label_attention(spec, {nullptr, &kAttended}), print_attention(spec, target, {}, {nullptr, &kAttended}));
}

// Heads of up to 64 and of up to 160 elements, by blocks of 64 rows and of 32.
void print_staged(AttentionKind kind, std::span<const Operand> operands, DType dtype, bool quads, const Target& target,
                  const Emit& emit) {
  for (const bool wide : kEither) {
    for (const bool mask : kEither) {
      AttentionSpec spec = attention_of(kind, operands, dtype, quads, mask);
      spec.kernel = static_cast<uint8_t>(AttentionKernel::staged) & 15;
      spec.block = wide ? 32 : 64;
      spec.head_columns = wide ? 5 : 2;
      spec.value_columns = wide ? 3 : 2;
      spec.ragged = wide != mask;
      spec.dropout = mask;
      emit(label_attention(spec), print_attention(spec, target));
      if (!mask) emit(label_attention(spec), print_attention(spec, target, kInPages));
      if (takes_result(kind)) print_with_epilogue(spec, target, emit);
    }
  }
  AttentionSpec spec = attention_of(kind, operands, dtype, quads, false, 1);
  spec.kernel = static_cast<uint8_t>(AttentionKernel::staged) & 15;
  spec.block = 32;
  spec.head_columns = spec.value_columns = 1;
  spec.scores = kScores.id;
  emit(label_attention(spec, {&kScores}), print_attention(spec, target, {}, {&kScores}));
}

}  // namespace

void print_matmul_kernels(const Target& target, const Emit& emit) {
  Products products(target, emit);
  products.by_elements(MatmulKernel::tile);
  if (!target.software) products.by_elements(MatmulKernel::shared);
  if (!target.software && target.subgroup == 0) products.by_tiles();
  if (target.software && target.subgroup == kMatmulSubgroup) products.by_lines(MatmulKernel::subgroup, {1, 2, 4});
  products.by_lines(MatmulKernel::vector, {1, 4});
}

void print_convolution_kernels(const Target& target, const Emit& emit) {
  Convolutions convolutions(target, emit);
  convolutions.tiles(ConvolutionForm::output);
  convolutions.tiles(ConvolutionForm::weight);
  convolutions.elements();
  if (!target.software) convolutions.by_tiles();
}

void print_attention_kernels(const Target& target, const Emit& emit) {
  for (const DType dtype : kFloats) {
    for (const uint8_t quads : {2, 16, 33, 64}) {
      if (target.software) continue;
      for (const bool mask : kEither) {
        AttentionSpec spec = attention_of(AttentionKind::forward, kForward, dtype, true, mask);
        spec.kernel = static_cast<uint8_t>(AttentionKernel::decode) & 15;
        spec.head_columns = quads;
        emit(label_attention(spec), print_attention(spec, target));
        print_with_epilogue(spec, target, emit);
      }
      AttentionSpec spec = attention_of(AttentionKind::combine, kCombine, dtype, true, false);
      spec.kernel = static_cast<uint8_t>(AttentionKernel::decode) & 15;
      spec.head_columns = quads;
      emit(label_attention(spec), print_attention(spec, target));
      print_with_epilogue(spec, target, emit);
    }
  }
  for (const auto& [kind, operands] : kKinds) {
    const bool masked = kind == AttentionKind::backward_mask, combines = kind == AttentionKind::combine;
    for (const DType dtype : kFloats) {
      for (const bool quads : kEither) {
        for (const bool mask : kEither) {
          if ((masked && !mask) || (combines && mask)) continue;
          AttentionSpec spec = attention_of(kind, operands, dtype, quads, mask);
          spec.by_subgroup = target.subgroup == 8;
          for (const bool dropout : kEither) {
            spec.dropout = dropout;
            spec.columns = dropout ? 8 : 1;  // heads of up to 256 and of up to 32 elements
            spec.block = !spec.by_subgroup ? 8 : dropout ? 2 : 16;
            emit(label_attention(spec), print_attention(spec, target));
            if (!dropout) emit(label_attention(spec), print_attention(spec, target, kInPages));
            if (!dropout && takes_result(kind)) print_with_epilogue(spec, target, emit);
          }
        }
        if (masked || combines) continue;
        if (!target.software) print_staged(kind, operands, dtype, quads, target, emit);
        AttentionSpec spec = attention_of(kind, operands, dtype, quads, false, 1);
        spec.by_subgroup = target.subgroup == 8;
        spec.columns = 2;
        spec.block = 8;
        spec.scores = kScores.id;
        emit(label_attention(spec, {&kScores}), print_attention(spec, target, {}, {&kScores}));
      }
    }
  }
}

}  // namespace torch_webgpu::test
