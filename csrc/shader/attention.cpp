#include "shader/attention.h"

#include <algorithm>

#include "shader/attention_decode.h"
#include "shader/attention_staged.h"
#include "shader/memory.h"

namespace torch_webgpu {
namespace {

using P = AttentionParams;
using Operand = AttentionOperand;

const char* const kFiles[] = {"attention_forward", "attention_combine", "attention_backward_query",
                              "attention_backward_key", "attention_backward_mask"};
const char* const kConstants[] = {"QUERY", "KEY", "VALUE", "GRAD", "OUT", "FIRST", "SECOND", "MASKS"};
const char* const kNames[] = {"query", "key",     "value", "grad",         "out",       "first", "second",
                              "mask",  "log_sum", "delta", "part_log_sum", "mask_grad", "most"};
constexpr std::pair<const char*, uint32_t> kCounts[] = {{"tasks", P::kTasks},           {"blocks", P::kBlocks},
                                                        {"kv_heads", P::kKvHeads},      {"group", P::kGroup},
                                                        {"queries", P::kQueries},       {"keys", P::kKeys},
                                                        {"drop_below", P::kDropBelow},  {"parts", P::kParts},
                                                        {"part_keys", P::kPartKeys},    {"part_stride", P::kPartStride},
                                                        {"chunk", P::kChunk},           {"batches", P::kBatches},
                                                        {"strip_heads", P::kStripHeads}};
constexpr std::pair<const char*, uint32_t> kFlexCounts[] = {{"query_blocks", P::kQueryBlocks},
                                                            {"query_block", P::kQueryBlock},
                                                            {"key_blocks", P::kKeyBlocks},
                                                            {"key_block", P::kKeyBlock}};

constexpr uint32_t kJoinLanes = 256;

std::string number(uint32_t value) { return std::to_string(value) + "u"; }

class Printer {
 public:
  Printer(const AttentionSpec& spec, const Target& target, Pages pages, const AttentionTexts& texts)
      : spec_(spec),
        source_(target, pages),
        target_(target),
        kind_(static_cast<AttentionKind>(spec.kind)),
        kernel_(static_cast<AttentionKernel>(spec.kernel)),
        scores_(texts.scores),
        epilogue_(texts.epilogue) {}

  std::string print() {
    bind();
    print_params();
    std::string cases;
    for (uint32_t i = 0; i < kAttentionWalked; ++i) {
      source_.print(std::string("const ") + kConstants[i] + " = " + number(i) + ";\n");
      if (!is_present(i) || i == index(Operand::mask)) continue;
      print_load(i);
      if (is_written(i)) print_store(i);
      cases += std::string("    case ") + kConstants[i] + ": { return load_" + kNames[i] + "(at, quad); }\n";
    }
    source_.print("fn load(operand: u32, at: u32, quad: u32) -> vec4<f32> {\n  switch operand {\n" + cases +
                  "    default: { return vec4<f32>(); }\n  }\n}\n");
    for (uint32_t i = kAttentionWalked; i < kAttentionOperands; ++i) {
      if (is_present(i)) print_flat(i);
    }
    if (epilogue_) print_epilogue();
    print_optional();
    print_mask();
    if (!is_for_lanes()) print_words();
    use_files();
    return source_.text();
  }

 private:
  static uint32_t index(Operand operand) { return static_cast<uint32_t>(operand); }
  bool is_present(uint32_t i) const { return spec_.operands[i].binding != kAttentionAbsent; }
  DType dtype(uint32_t i) const { return static_cast<DType>(spec_.operands[i].dtype); }
  // What a kernel does not write has no function that stores to it, so that its binding is declared for reading.
  bool is_written(uint32_t i) const {
    switch (static_cast<Operand>(i)) {
      case Operand::first:
      case Operand::second:
      case Operand::mask_grad:
      case Operand::most: return true;
      case Operand::out: return kind_ != AttentionKind::backward_query;
      case Operand::log_sum: return kind_ == AttentionKind::forward || kind_ == AttentionKind::combine;
      case Operand::delta: return kind_ == AttentionKind::backward_query;
      default: return false;
    }
  }
  bool is_tiled() const { return kind_ != AttentionKind::combine && kind_ != AttentionKind::backward_mask; }
  bool is_for_lanes() const { return kernel_ == AttentionKernel::lanes; }
  Memory memory(uint32_t i) const {
    const uint32_t binding = spec_.operands[i].binding;
    return {"m" + std::to_string(binding), size_bytes(dtype(i)), array_of(i), source_.is_paged(binding)};
  }
  // An operand that is walked in quads is bound as such; what is bound to two operands is bound alike.
  std::string array_of(uint32_t i) const {
    return spec_.quads && i < index(Operand::mask) ? array_of_quads(size_bytes(dtype(i))) : "u32";
  }

  // A text's own bindings come first.
  void bind() {
    std::string elements[kAttentionAbsent + 1];
    for (uint32_t i = 0; i < kAttentionOperands; ++i) {
      if (is_present(i)) elements[spec_.operands[i].binding] = array_of(i);
    }
    const uint32_t first = scores_ ? scores_->bindings : epilogue_ ? epilogue_->bindings() : 0;
    for (uint32_t i = first; !elements[i].empty(); ++i) source_.bind(i, elements[i]);
  }

  // The elements of `out`, numbered as if they lay dense in memory.
  void print_epilogue() {
    for (const auto& file : epilogue_->files) source_.use(file);
    const bool fours = spec_.quads && !epilogue_->fours.empty();
    const std::string width = param(P::kValueSize);
    source_.print((fours ? epilogue_->fours : epilogue_->elements) +
                  "\nfn store_out(at: u32, quad: u32, v: vec4<f32>) {\n");
    if (fours) {
      source_.print("  if (quad * 4u < " + width + ") { epilogue_four((at + quad) * 4u, v); }\n}\n");
      return;
    }
    source_.print(std::string("  let first = ") + (spec_.quads ? "4u * at" : "at") + " + 4u * quad;\n" +
                  "  for (var j = 0u; j < 4u && 4u * quad + j < " + width +
                  "; j++) { epilogue(first + j, v[j]); }\n}\n");
  }

  void print_function(const std::string& name, const std::string& type, const std::string& value) {
    source_.print("fn " + name + "() -> " + type + " { return " + value + "; }\n");
  }

  void print_params() {
    for (const auto& [name, word] : kCounts) print_function(name, "u32", param(word));
    print_function("causal", "bool", param(P::kCausal) + " != 0u");
    print_function("scale", "f32", param_value(Compute::f32, P::kScale));
    print_function("keep_scale", "f32", param_value(Compute::f32, P::kKeepScale));
    print_function("head_quads", "u32", "(" + param(P::kHeadSize) + " + 3u) / 4u");
    print_function("value_quads", "u32", "(" + param(P::kValueSize) + " + 3u) / 4u");
    print_function("mask_sizes", "vec4<u32>", "params[" + std::to_string(P::kMaskSizes / 4) + "]");
    print_function("log_unit", "f32", param_value(Compute::f32, P::kLogUnit));
    if (scores_) print_flex_params();
    source_.print("fn word(i: u32) -> u32 { return given[" + std::to_string(P::kRandom / 4) + "][i]; }\n");
    source_.print("fn strides(operand: u32) -> vec4<u32> {\n  switch operand {\n");
    for (uint32_t i = 0; i < kAttentionWalked; ++i) {
      source_.print("    case " + number(i) + ": { return params[" + std::to_string(P::kPlaces / 4 + i) + "]; }\n");
    }
    source_.print(
        "    default: { return vec4<u32>(); }\n  }\n}\n"
        "fn place(operand: u32, batch: u32, head: u32, row: u32) -> u32 {\n  let p = strides(operand);\n"
        "  return p.x + batch * p.y + head * p.z + row * p.w;\n}\n"
        "fn row_stride(operand: u32) -> u32 { return strides(operand).w; }\n");
    source_.print("const BLOCK = " + number(spec_.block) + ";\nconst COLUMNS = " + number(spec_.columns) +
                  ";\nconst MASK = " + (is_present(index(Operand::mask)) ? "true" : "false") +
                  ";\nconst FLEX = " + (scores_ ? "true" : "false") + ";\n");
  }

  void print_flex_params() {
    for (const auto& [name, word] : kFlexCounts) print_function(name, "u32", param(word));
    source_.print("fn list_place(list: u32) -> vec4<u32> {\n  switch list {\n");
    for (uint32_t i = 0; i < 4; ++i) {
      source_.print("    case " + number(i) + ": { return params[" + std::to_string(P::kLists / 4 + i) + "]; }\n");
    }
    source_.print("    default: { return vec4<u32>(); }\n  }\n}\n");
  }

  // Operands of which a kernel asks first whether they are there.
  void print_optional() {
    for (const auto& [constant, operand] :
         {std::pair{"MOST", Operand::most}, {"LOG_SUM_GRAD", Operand::part_log_sum}}) {
      source_.print(std::string("const ") + constant + " = " + (is_present(index(operand)) ? "true" : "false") + ";\n");
      if (is_present(index(operand))) continue;
      const std::string name = kNames[index(operand)];
      source_.print("fn load_" + name + "(i: u32) -> f32 { return 0.0; }\nfn store_" + name + "(i: u32, v: f32) {}\n");
    }
  }

  // How many elements a row of the operand has.
  std::string width(uint32_t i) const {
    const bool of_values = i == index(Operand::value) || i == index(Operand::grad) || i == index(Operand::out) ||
                           i == index(Operand::second);
    return param(of_values ? P::kValueSize : P::kHeadSize);
  }

  std::string element(uint32_t i, const std::string& at) const { return from_raw(dtype(i), memory(i).load(at)); }

  // Four elements of a row. Beyond its end they are zero, or with quads undefined and unused.
  void print_load(uint32_t i) {
    source_.print(std::string("fn load_") + kNames[i] + "(at: u32, quad: u32) -> vec4<f32> {\n");
    if (spec_.quads) {
      source_.print(memory(i).load_quad("q", "at + quad") + "  return " + floats_of_quad(dtype(i), "q") + ";\n}\n");
      return;
    }
    source_.print("  var v = vec4<f32>();\n  let by = " + param(P::kElementStrides + i) + ";\n");
    for (uint32_t j = 0; j < 4; ++j) {
      const std::string place = "quad * 4u + " + number(j);
      source_.print("  if (" + place + " < " + width(i) + ") { v." + "xyzw"[j] + " = " +
                    element(i, "at + (" + place + ") * by") + "; }\n");
    }
    source_.print("  return v;\n}\n");
  }

  // Without quads results are float32: then no two invocations share a word.
  void print_store(uint32_t i) {
    source_.print(std::string("fn store_") + kNames[i] + "(at: u32, quad: u32, v: vec4<f32>) {\n");
    if (spec_.quads) {
      const std::string packed =
          size_bytes(dtype(i)) == 4 ? "bitcast<vec4<u32>>" : std::string("pack_") + name(dtype(i));
      source_.print("  if (quad * 4u < " + width(i) + ") { " + memory(i).assign("at + quad", packed + "(v)") +
                    " }\n}\n");
      return;
    }
    source_.print("  let by = " + param(P::kElementStrides + i) + ";\n");
    for (uint32_t j = 0; j < 4; ++j) {
      const std::string place = "quad * 4u + " + number(j);
      source_.print("  if (" + place + " < " + width(i) + ") { " +
                    memory(i).assign("at + (" + place + ") * by", to_raw(DType::f32, std::string("v.") + "xyzw"[j])) +
                    " }\n");
    }
    source_.print("}\n");
  }

  // Tiles of float16 stay packed: GPUs unpack them as they multiply.
  bool is_packed() const {
    bool packed = spec_.quads;
    for (const auto i : {Operand::query, Operand::key, Operand::value, Operand::grad}) {
      packed &= !is_present(index(i)) || dtype(index(i)) == DType::f16;
    }
    return packed;
  }
  void print_words() {
    source_.print(is_packed() ? "alias Word = vec2<u32>;\nfn wide(w: Word) -> vec4<f32> {\n"
                                "  return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));\n}\n"
                              : "alias Word = vec4<f32>;\nfn wide(w: Word) -> vec4<f32> { return w; }\n");
    for (const auto operand : {Operand::query, Operand::key, Operand::value, Operand::grad}) {
      const uint32_t i = index(operand);
      if (!is_present(i)) continue;
      source_.print(std::string("fn tile_") + kNames[i] + "(at: u32, quad: u32) -> Word { return " +
                    (is_packed() ? memory(i).element("at + quad") : std::string("load_") + kNames[i] + "(at, quad)") +
                    "; }\n");
    }
  }

  void print_flat(uint32_t i) {
    const std::string name = kNames[i], at = i == index(Operand::delta) ? "i + " + param(P::kDeltaPlace) : "i";
    source_.print("fn load_" + name + "(i: u32) -> f32 { return " + from_raw(DType::f32, memory(i).load(at)) + "; }\n");
    if (!is_written(i)) return;
    source_.print("fn store_" + name + "(i: u32, v: f32) { " + memory(i).assign(at, to_raw(DType::f32, "v")) + " }\n");
  }

  // The mask for one query and four keys, or for four queries and one key.
  void print_mask() {
    source_.print("fn mask_at(at: u32) -> f32 { return " +
                  (is_present(index(Operand::mask)) ? element(index(Operand::mask), "at") : std::string("0.0")) +
                  "; }\n");
    source_.print("fn mask_stride() -> u32 { return " + param(P::kElementStrides + index(Operand::mask)) + "; }\n");
  }

  StagedAttention staged() const {
    return {kind_,
            spec_.block,
            spec_.head_columns,
            spec_.value_columns,
            is_packed(),
            spec_.ragged != 0,
            is_present(index(Operand::mask)),
            scores_ != nullptr,
            is_present(index(Operand::most)),
            is_present(index(Operand::part_log_sum))};
  }

  void use_decode() {
    source_.use("attention_tasks");
    source_.use("attention_staged");
    if (kind_ == AttentionKind::forward) {
      source_.use("attention_plain");
      const uint32_t bytes = size_bytes(dtype(index(Operand::key)));
      source_.print(print_attention_decode(decode_for(spec_.head_columns, bytes, is_present(index(Operand::mask)))));
      return;
    }
    uint32_t quads = 8;
    while (quads < spec_.head_columns) quads *= 2;
    source_.print("const QUADS = " + number(quads) + ";\nconst SLOTS = " + number(kJoinLanes / quads) +
                  ";\nconst WORKGROUP = " + number(kJoinLanes) + ";\n");
    source_.use("attention_join");
  }

  void use_files() {
    source_.use(Compute::f32);
    source_.use("halves");
    source_.use("attention");
    source_.use("exp_below");
    if (spec_.dropout) source_.use("philox");
    source_.use(spec_.dropout ? "attention_dropout" : "attention_whole");
    if (is_for_lanes()) source_.use(kFiles[spec_.kind]);
    if (scores_) {
      for (const auto& file : scores_->files) source_.use(file);
      source_.print(scores_->text);
    }
    if (kernel_ == AttentionKernel::decode) return use_decode();
    if (!is_tiled()) {
      source_.print("const WORKGROUP = " + number(target_.workgroup) + ";\n");
      source_.use("program");
      return;
    }
    source_.use("attention_tasks");
    source_.use(scores_ ? "attention_flex" : "attention_plain");
    if (kernel_ == AttentionKernel::staged) {
      source_.use("attention_staged");
      source_.print(print_attention_staged(staged()));
      return;
    }
    source_.use("attention_tile");
    source_.use(spec_.by_subgroup ? "attention_subgroup" : "attention_group");
    if (spec_.by_subgroup) source_.use_subgroups();
  }

  const AttentionSpec& spec_;
  ShaderSource source_;
  const Target& target_;
  const AttentionKind kind_;
  const AttentionKernel kernel_;
  const ScoreText* const scores_;
  const EpilogueText* const epilogue_;
};

}  // namespace

std::string print_attention(const AttentionSpec& spec, const Target& target, Pages pages, const AttentionTexts& texts) {
  return Printer(spec, target, pages, texts).print();
}

std::string label_attention(const AttentionSpec& spec, const AttentionTexts& texts) {
  const auto value = spec.operands[static_cast<uint32_t>(AttentionOperand::value)];
  std::string what = std::string(kFiles[spec.kind]) + "(" + name(static_cast<DType>(value.dtype)) + ")";
  switch (static_cast<AttentionKernel>(spec.kernel)) {
    case AttentionKernel::lanes: break;
    case AttentionKernel::staged:
      what += ", " + std::to_string(spec.block) + " rows of up to " +
              std::to_string(32 * std::max(spec.head_columns, spec.value_columns)) + " staged";
      break;
    case AttentionKernel::decode: what += ", decode " + std::to_string(4 * spec.head_columns); break;
  }
  if (texts.epilogue) return texts.epilogue->label + ": " + what;
  return texts.scores ? texts.scores->label + ": " + what : what;
}

}  // namespace torch_webgpu
