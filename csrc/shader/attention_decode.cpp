#include "shader/attention_decode.h"

#include <algorithm>

namespace torch_webgpu {
namespace {

constexpr char kParts[] = "xyzw";

std::string text(uint32_t value) { return std::to_string(value); }
std::string number(uint32_t value) { return std::to_string(value) + "u"; }

class Printer {
 public:
  explicit Printer(const DecodeAttention& kernel) : kernel_(kernel), width_(4 * kernel.quads * kernel.team) {}

  std::string print() {
    const uint32_t keys = kernel_.keys(), team = kernel_.team, teams = kernel_.teams();
    // First products by key and lane, in rows that begin in different banks; then sums by team and element.
    line("var<workgroup> pool: array<f32, " + text(std::max(keys * (team + 1), teams * (width_ + team))) + ">;");
    line("const WORKGROUP = " + number(DecodeAttention::kLanes) + ";");
    line("var<workgroup> weights: array<f32, " + text(teams) + ">;");
    line("var<workgroup> scores: array<f32, " + text(keys) + ">;");
    line("var<workgroup> tops: array<f32, 16>;");
    line("fn run(task: u32, lane: u32) {");
    line("let part = task % parts();");
    line("let strip = task / parts() % strips();");
    line("let batch = task / parts() / strips();");
    line("let kv_head = kv_head_of(strip);");
    line("let column = lane % " + number(team) + ";");
    line("let row = lane / " + number(team) + ";");
    line("let first = part * part_keys();");
    line("let end = min(first + part_keys(), keys());");
    load("key", "KEY", "head_quads");
    load("value", "VALUE", "value_quads");
    line("for (var member = 0u; member < rows_of(strip); member++) {");
    line("let q = query_at(strip, member);");
    scores();
    weigh();
    join();
    line("}");
    line("}");
    return text_;
  }

 private:
  void line(const std::string& code) { text_ += code + "\n"; }
  void barrier() { line("workgroupBarrier();"); }

  std::string quad(uint32_t j) const {
    return kernel_.quads == 1 ? "column" : "column * " + number(kernel_.quads) + " + " + number(j);
  }
  static std::string name(const char* operand, uint32_t i, uint32_t j) { return operand + text(i) + "_" + text(j); }

  // All loads are under way at once. What is behind a row's end is zero.
  void load(const char* operand, const char* constant, const char* quads) {
    const std::string base = std::string(operand) + "_base", what = operand;
    line("let " + base + " = place(" + constant + ", batch, kv_head, 0u);");
    for (uint32_t i = 0; i < DecodeAttention::kKeysOfLane; ++i) {
      const std::string at = what + "_at" + text(i);
      line("let " + at + " = " + base + " + min(first + row + " + number(i * kernel_.teams()) +
           ", end - 1u) * row_stride(" + constant + ");");
      for (uint32_t j = 0; j < kernel_.quads; ++j) {
        line("let " + name(operand, i, j) + " = select(Word(), tile_" + what + "(" + at + ", " + quad(j) + "), " +
             quad(j) + " < " + quads + "());");
      }
    }
  }

  void scores() {
    const uint32_t team = kernel_.team, keys = kernel_.keys();
    line("let query = place(QUERY, batch, q.head, q.index);");
    for (uint32_t j = 0; j < kernel_.quads; ++j) {
      line("let asked" + text(j) + " = select(vec4<f32>(), load_query(query, " + quad(j) + "), " + quad(j) +
           " < head_quads());");
    }
    for (uint32_t i = 0; i < DecodeAttention::kKeysOfLane; ++i) {
      std::string sum;
      for (uint32_t j = 0; j < kernel_.quads; ++j) {
        sum += std::string(j ? " + " : "") + "dot(asked" + text(j) + ", wide(" + name("key", i, j) + "))";
      }
      line("pool[(row + " + number(i * kernel_.teams()) + ") * " + number(team + 1) + " + column] = " + sum + ";");
    }
    barrier();
    line("if (lane < " + number(keys) + ") {");
    line("var x = 0.0;");
    for (uint32_t c = 0; c < team; ++c) line("x += pool[lane * " + number(team + 1) + " + " + number(c) + "];");
    line("x *= scale();");
    line("let key = first + lane;");
    if (kernel_.mask) {
      line("x += mask_at(place(MASKS, batch, q.head, q.index) + min(key, end - 1u) * mask_stride());");
    }
    line("scores[lane] = select(-inf_f32(), x, key < min(end, keys_seen(q.index)));");
    line("}");
    barrier();
    line("if (lane < 16u) {");
    line("var most = -3.4028234e38;");  // finite: from -inf, scores of -inf would come to NaN
    for (uint32_t c = 0; c < keys / 16; ++c) line("most = max(most, scores[lane + " + number(16 * c) + "]);");
    line("tops[lane] = most;");
    line("}");
    barrier();
    line("var most = tops[0];");
    for (uint32_t c = 1; c < 16; ++c) line("most = max(most, tops[" + text(c) + "]);");
  }

  void weigh() {
    line("var total = 0.0;");
    for (uint32_t j = 0; j < kernel_.quads; ++j) line("var sum" + text(j) + " = vec4<f32>();");
    for (uint32_t i = 0; i < DecodeAttention::kKeysOfLane; ++i) {
      const std::string p = "p" + text(i);
      line("let " + p + " = fading(vec4<f32>(scores[row + " + number(i * kernel_.teams()) + "] - most)).x;");
      line("total += " + p + ";");
      for (uint32_t j = 0; j < kernel_.quads; ++j) {
        const std::string sum = "sum" + text(j);
        line(sum + " = fma(vec4<f32>(" + p + "), wide(" + name("value", i, j) + "), " + sum + ");");
      }
    }
    for (uint32_t j = 0; j < kernel_.quads; ++j) {
      for (uint32_t c = 0; c < 4; ++c) {
        line("pool[row * " + number(width_ + kernel_.team) + " + column + " + number((4 * j + c) * kernel_.team) +
             "] = sum" + text(j) + "." + kParts[c] + ";");
      }
    }
    line("if (column == 0u) { weights[row] = total; }");
    barrier();
  }

  // The teams' sums: an element to a lane, then four of them to a quad.
  void join() {
    const uint32_t stride = width_ + kernel_.team;
    line("var element = 0.0;");
    line("if (lane < " + number(width_) + ") {");
    for (uint32_t t = 0; t < kernel_.teams(); ++t) line("element += pool[lane + " + number(t * stride) + "];");
    line("}");
    line("var whole = 0.0;");
    for (uint32_t t = 0; t < kernel_.teams(); ++t) line("whole += weights[" + text(t) + "];");
    barrier();
    line("if (lane < " + number(width_) + ") { pool[lane] = element; }");
    barrier();
    line("if (lane < value_quads()) {");
    line("let start = lane / " + number(kernel_.quads) + " + lane % " + number(kernel_.quads) + " * " +
         number(4 * kernel_.team) + ";");
    std::string elements;
    for (uint32_t c = 0; c < 4; ++c) {
      elements += std::string(c ? ", " : "") + "pool[start + " + number(c * kernel_.team) + "]";
    }
    line("let share = select(1.0 / whole, 0.0, whole == 0.0);");
    line("store_out(place(OUT, batch, q.head, q.index) + part * part_stride(), lane, vec4<f32>(" + elements +
         ") * share);");
    line("}");
    line("if (lane == 0u) {");
    line("let log_sum = select(most + log_f32(whole), -inf_f32(), whole == 0.0);");
    line("store_log_sum(query_number(batch, q.head, q.index) * parts() + part, log_sum * log_unit());");
    line("}");
    barrier();
  }

  const DecodeAttention& kernel_;
  const uint32_t width_;  // elements of a key that a team holds
  std::string text_;
};

}  // namespace

std::string print_attention_decode(const DecodeAttention& kernel) { return Printer(kernel).print(); }

}  // namespace torch_webgpu
