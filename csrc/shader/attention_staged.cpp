#include "shader/attention_staged.h"

#include <algorithm>

#include "shader/attention.h"

namespace torch_webgpu {
namespace {

constexpr uint32_t kRows = kStagedLaneRows;
constexpr uint32_t kSliceQuads = 16;  // of a row of a tile: longer rows are staged slice by slice
constexpr char kParts[] = "xyzw";

std::string text(uint32_t value) { return std::to_string(value); }
std::string number(uint32_t value) { return std::to_string(value) + "u"; }

// Lane (down, across) has four rows of the block, and of each the scores of four rows of the tile, eight apart from
// `across` on. Of the sums it has every eighth quad. Registers are written out, since not every driver unrolls loops
// over arrays.
//
// Indices of workgroup memory are checked. In arrays that are nested so that a lane's part of an index has a dimension
// of its own, the check leaves the loops, and what is known when printing becomes the offset of an instruction. Quads
// of a tile are stored at a place XORed with the row's: lanes then meet in no bank, whether they read one quad of eight
// rows or eight quads of one.
class Printer {
 public:
  explicit Printer(const StagedAttention& kernel)
      : kernel_(kernel),
        // Slices have a bound from the parameters, or compilers unroll them and keep all loads in registers.
        step_(kernel.ragged   ? 1
              : kernel.packed ? 4
                              : 2),
        loaded_rows_(kernel.lanes() / kSliceQuads) {}

  std::string print() {
    declare();
    line("fn run(task: u32, lane: u32) {");
    switch (kernel_.kind) {
      case AttentionKind::backward_query: backward_query(); break;
      case AttentionKind::backward_key: backward_key(); break;
      default: forward(); break;
    }
    line("}");
    return text_;
  }

 private:
  void line(const std::string& code) { text_ += code + "\n"; }
  void barrier() { line("workgroupBarrier();"); }

  // The same line for each of the lane's rows, or of the tile's: `#` stands for its number.
  void each_row(const std::string& code) {
    for (uint32_t i = 0; i < kRows; ++i) {
      std::string row = code;
      for (size_t at = row.find('#'); at != std::string::npos; at = row.find('#', at)) row.replace(at, 1, text(i));
      line(row);
    }
  }
  // vec4(f(0), ..., f(3))
  template <class F>
  static std::string four(const F& f) {
    return "vec4<f32>(" + f(0) + ", " + f(1) + ", " + f(2) + ", " + f(3) + ")";
  }
  static std::string four_of(const std::string& before, const std::string& behind) {
    return four([&](uint32_t i) { return before + text(i) + behind; });
  }

  void declare() {
    line("const WORKGROUP = " + number(kernel_.lanes()) + ";");
    // [row / 8][row % 8][quad / 8][quad % 8 ^ row % 8]
    line("var<workgroup> tile: array<array<array<array<Word, 8>, 2>, 8>, 4>;");
    // [row / 8][down][row % 8]: the weights of a row of the tile for four rows of the block
    line("var<workgroup> weights: array<array<array<vec4<f32>, 8>, " + text(kernel_.rows / kRows) + ">, 4>;");
  }

  void begin() {
    line("let across = lane % 8u;");
    line("let down = lane / 8u;");
    line("let row = lane / 16u;");
    line("let quad = lane % 16u;");
    // A second load of a slice takes other rows: compilers would keep the first one's registers instead.
    line("let other = row ^ 1u;");
    for (uint32_t u = 0; u < 8; ++u) line("let turn" + text(u) + " = across ^ " + number(u) + ";");
  }

  void own_queries() {
    each_row("let q# = query_at(strip, first + down * 4u + #u);");
    each_row("let query# = place(QUERY, batch, q#.head, q#.index);");
    each_row("let number# = query_number(batch, q#.head, q#.index);");
    if (!kernel_.flex) each_row("let limit# = last_key(walk, q#.index);");
    if (kernel_.mask) each_row("let mask# = place(MASKS, batch, q#.head, q#.index);");
  }

  static uint32_t slices(uint32_t columns) { return (columns + 1) / 2; }

  void zero_sums(const std::string& name, uint32_t columns) {
    for (uint32_t h = 0; h < columns; ++h) each_row("var " + name + "#_" + text(h) + " = vec4<f32>();");
  }

  // Loads a slice of the tile's rows, and puts it there once all lanes are done with the last one.
  void fetch(const std::string& name, const std::string& operand, uint32_t slice, const std::string& row = "row") {
    for (uint32_t n = 0; n < 32 / loaded_rows_; ++n) {
      const std::string at = "min(span.first + " + row + " + " + number(n * loaded_rows_) + ", span.end - 1u)";
      line("let " + name + text(n) + " = tile_" + operand + "(" + operand + "_base + " + at + " * " + operand +
           "_stride, quad + " + number(slice * kSliceQuads) + ");");
    }
  }
  void stage(const std::string& name, const std::string& row = "row") {
    for (uint32_t n = 0; n < 32 / loaded_rows_; ++n) {
      const uint32_t first = n * loaded_rows_;
      const std::string low = first % 8 ? "(" + row + " + " + number(first % 8) + ")" : row;
      line("tile[" + text(first / 8) + "][" + low + "][quad / 8u][(quad % 8u) ^ " + low + "] = " + name + text(n) +
           ";");
    }
  }
  void load_slice(const std::string& name, const std::string& operand, uint32_t slice, const std::string& row = "row") {
    fetch(name, operand, slice, row);
    barrier();
    stage(name, row);
    barrier();
  }

  // name<row of the block>_<row of the tile> += a slice of their product; the block's rows come through the cache.
  void dots(const std::string& name, const std::string& owner, const std::string& quads, uint32_t slice) {
    const uint32_t first = slice * kSliceQuads;
    line("for (var h = 0u; h < min(" + number(kSliceQuads) + ", " + quads + "() - " + number(first) +
         "); h += " + number(step_) + ") {");
    for (uint32_t u = 0; u < step_; ++u) {
      line("{");
      each_row("let a# = load_" + owner + "(" + owner + "#, h + " + number(first + u) + ");");
      line("let turn = (across ^ (h % 8u)) ^ " + number(u) + ";");
      each_row("let b# = wide(tile[#][across][h / 8u][turn]);");
      for (uint32_t i = 0; i < kRows; ++i) {
        const std::string row = name + text(i) + "_";
        each_row(row + "# = dot_on(a" + text(i) + ", b#, " + row + "#);");
      }
      line("}");
    }
    line("}");
  }
  void product(const std::string& name, const std::string& owner, const std::string& staged, const std::string& quads,
               uint32_t columns) {
    for (uint32_t i = 0; i < kRows; ++i) each_row("var " + name + text(i) + "_# = 0.0;");
    for (uint32_t slice = 0; slice < slices(columns); ++slice) {
      load_slice(name + "_" + text(slice) + "_", staged, slice);
      dots(name, owner, quads, slice);
    }
  }
  // The scores of a row, as functions of four columns take them.
  void as_vectors(const std::string& to, const std::string& from, const std::string& factor) {
    for (uint32_t i = 0; i < kRows; ++i) {
      line("var " + to + text(i) + " = " + four_of(from + text(i) + "_", "") + factor + ";");
    }
  }

  void pass_on(const std::string& name) {
    for (uint32_t j = 0; j < 4; ++j) {
      line("weights[" + text(j) + "][down][across] = " + four_of(name, std::string(".") + kParts[j]) + ";");
    }
  }
  // sums<row of the block>_<column> += weight * row of the tile, over those of the tile.
  void fold(const std::string& sums, uint32_t columns, uint32_t slice) {
    line("for (var j = 0u; j < 4u; j++) {");
    for (uint32_t u = 0; u < 8; ++u) {
      line("{");
      line("let p = weights[j][down][" + text(u) + "];");
      for (uint32_t h = 0; h < std::min(2u, columns - 2 * slice); ++h) {
        line("let b" + text(h) + " = wide(tile[j][" + text(u) + "][" + text(h) + "][turn" + text(u) + "]);");
        for (uint32_t i = 0; i < kRows; ++i) {
          const std::string sum = sums + text(i) + "_" + text(2 * slice + h);
          line(sum + " = fma(vec4<f32>(p." + kParts[i] + "), b" + text(h) + ", " + sum + ");");
        }
      }
      line("}");
    }
    line("}");
  }
  // The same over all slices of an operand, of which the last is still staged.
  void fold_back(const std::string& sums, const std::string& operand, uint32_t columns) {
    for (uint32_t slice = slices(columns); slice-- > 0;) {
      if (slice + 1 != slices(columns)) load_slice(sums + "_" + text(slice) + "_", operand, slice, "other");
      fold(sums, columns, slice);
    }
  }

  // Over the eight lanes of a row: a vec4 has a number for each row.
  void exchange(const std::string& name, const std::string& start, const std::string& value, bool largest) {
    line("weights[0][down][across] = " + value + ";");
    barrier();
    line("var " + name + " = " + start + ";");
    for (uint32_t u = 0; u < 8; ++u) {
      const std::string other = "weights[0][down][" + text(u) + "]";
      line(name + (largest ? " = max(" + name + ", " + other + ");" : " += " + other + ";"));
    }
  }

  void store_rows(const std::string& operand, const std::string& place, const std::string& sums, uint32_t columns,
                  const std::string& count, const std::string& factor) {
    for (uint32_t i = 0; i < kRows; ++i) {
      line("if (first + down * 4u + " + number(i) + " < " + count + ") {");
      line("let to = " + place + text(i) + ";");
      for (uint32_t h = 0; h < columns; ++h) {
        line("store_" + operand + "(to, across + " + number(8 * h) + ", " + sums + text(i) + "_" + text(h) + " * " +
             (factor.empty() ? std::string("scale()") : factor + "." + kParts[i]) + ");");
      }
      line("}");
    }
  }
  // Numbers of rows are taken by a lane each.
  void begin_numbers() {
    line("let own = min(across, 3u);");
    line("if (across < 4u && first + down * 4u + own < rows_of(strip)) {");
    line("let whose = query_at(strip, first + down * 4u + own);");
    line("let number = query_number(batch, whose.head, whose.index);");
  }

  void bases() {
    for (const char* const operand : {"key", "value"}) {
      const std::string name = operand, constant = name == "key" ? "KEY" : "VALUE";
      line("let " + name + "_base = place(" + constant + ", batch, kv_head, 0u);");
      line("let " + name + "_stride = row_stride(" + constant + ");");
    }
  }

  void begin_walk_over_keys(const std::string& part) {
    line("let strip = work.strip;");
    line("let batch = work.batch;");
    line("let first = (blocks() - 1u - work.block) * BLOCK;");  // those that see the most keys start first
    line("if (FLEX && first >= rows_of(strip)) { return; }");
    line("let kv_head = kv_head_of(strip);");
    line("let walk = walk_keys(batch, strip, first, " + part + ");");
    begin();
    own_queries();
    bases();
    if (!kernel_.flex) line("let seen_by_all = min(keys_seen_by_all(first), walk.last);");
  }
  void begin_keys() {
    line("for (var step = walk.begin; step < walk.end; step++) {");
    line("let span = keys_at(walk, step);");
    line("if (FLEX && span.first >= span.end) { continue; }");
    line("let columns = columns_of(span.first, lane);");
  }
  void add_mask() {
    if (kernel_.mask) {
      line("let inside = min(columns, vec4<u32>(keys() - 1u));");
      each_row("x# += load_mask(mask#, inside);");
    }
  }
  // What is not seen gets another value; most tiles have no such column.
  void hide(const std::string& hidden) {
    line("if (span.first + TILE > seen_by_all) {");
    each_row("x# = select(" + hidden + ", x#, columns < vec4<u32>(limit#));");
    line("}");
  }

  void forward() {
    line("let part = task % parts();");
    line("let work = task_of(task / parts(), strips());");
    begin_walk_over_keys("part");
    zero_sums("o", kernel_.value_columns);
    line("var top = vec4<f32>(-3.4028234e38);");  // finite: from -inf, a row that begins with -inf would come to NaN
    line("var total = vec4<f32>();");
    begin_keys();
    product("s", "query", "key", "head_quads", kernel_.head_columns);
    fetch("v0_", "value", 0);
    as_vectors("x", "s", " * scale()");
    if (kernel_.flex) {
      each_row("x# = flex_scores(x#, batch, q#, columns, span);");
    } else {
      add_mask();
      hide("vec4<f32>(-inf_f32())");
    }
    exchange("most", "top", four_of("largest(x", ")"), true);
    line("let fade = fading(top - most);");
    line("top = most;");
    stage("v0_");
    for (uint32_t i = 0; i < kRows; ++i) {
      line("x" + text(i) + " = fading(x" + text(i) + " - vec4<f32>(top." + kParts[i] + "));");
    }
    line("total = fma(total, fade, " + four_of("sum_of(x", ")") + ");");
    for (uint32_t i = 0; i < kRows; ++i) {
      for (uint32_t h = 0; h < kernel_.value_columns; ++h) {
        line("o" + text(i) + "_" + text(h) + " *= fade." + kParts[i] + ";");
      }
    }
    each_row("x# = kept(x#, number#, columns);");
    barrier();
    pass_on("x");
    barrier();
    for (uint32_t slice = 0; slice < slices(kernel_.value_columns); ++slice) {
      if (slice) load_slice("v" + text(slice) + "_", "value", slice);
      fold("o", kernel_.value_columns, slice);
    }
    line("}");
    barrier();
    exchange("sum", "vec4<f32>()", "total", false);
    line("let share = select(keep_scale() / sum, vec4<f32>(), sum == vec4<f32>());");
    each_row("let to# = place(OUT, batch, q#.head, q#.index) + part * part_stride();");
    store_rows("out", "to", "o", kernel_.value_columns, "rows_of(strip)", "share");
    begin_numbers();
    line("let nothing = sum[own] == 0.0;");
    line("store_log_sum(number * parts() + part,");
    line("    select(top[own] + log_f32(sum[own]), -inf_f32(), nothing) * log_unit());");
    if (kernel_.most) line("store_most(number, select(top[own], -inf_f32(), nothing) * log_unit());");
    line("}");
  }

  void backward_query() {
    line("let work = task_of(task, strips());");
    begin_walk_over_keys("0u");
    each_row("let grad# = place(GRAD, batch, q#.head, q#.index);");
    line("var mine = vec4<f32>();");
    line("for (var i = across; i < value_quads(); i += 8u) {");
    for (uint32_t i = 0; i < kRows; ++i) {
      const std::string q = "q" + text(i);
      line(std::string("mine.") + kParts[i] + " += dot(load_grad(grad" + text(i) + ", i), load_out(place(OUT, batch, " +
           q + ".head, " + q + ".index), i));");
    }
    line("}");
    barrier();
    exchange("delta", "vec4<f32>()", "mine", false);
    if (kernel_.log_sum_grad) line("delta -= " + four_of("load_part_log_sum(number", ")") + " / log_unit();");
    line("let divisor = " + four_of("divisor_of(load_log_sum(number", ") * log_unit())") + ";");
    begin_numbers();
    line("store_delta(number, delta[own]);");
    line("}");
    zero_sums("o", kernel_.head_columns);
    begin_keys();
    product("t", "grad", "value", "value_quads", kernel_.value_columns);
    product("s", "query", "key", "head_quads", kernel_.head_columns);
    as_vectors("x", "s", " * scale()");
    as_vectors("slope", "t", "");
    for (uint32_t i = 0; i < kRows; ++i) {
      const std::string x = "x" + text(i), slope = "slope" + text(i), part = std::string(".") + kParts[i];
      if (kernel_.flex) {
        const std::string call = "(" + x + ", batch, q" + text(i) + ", columns, ";
        line(slope + " = fading(flex_scores" + call + "span) - divisor" + part + ") * (" + slope + " - delta" + part +
             ");");
        line(x + " = flex_slopes" + call + slope + ");");
        continue;
      }
      if (i == 0) add_mask();
      line(x + " = fading(" + x + " - divisor" + part + ") * (kept(" + slope + " * keep_scale(), number" + text(i) +
           ", columns) - delta" + part + ");");
    }
    if (!kernel_.flex) hide("vec4<f32>()");
    pass_on("x");
    barrier();
    fold_back("o", "key", kernel_.head_columns);
    line("}");
    each_row("let to# = place(FIRST, batch, q#.head, q#.index);");
    store_rows("first", "to", "o", kernel_.head_columns, "rows_of(strip)", "");
  }

  void backward_key() {
    line("let work = task_of(task, key_strips());");
    line("let strip = work.strip;");
    line("let batch = work.batch;");
    line("let first = first_key(strip) + work.block * BLOCK;");  // those that most queries see start first
    line("let end = end_of_keys(strip);");
    line("if (FLEX && first >= end) { return; }");
    line("let kv_head = kv_head_of_keys(strip);");
    begin();
    // Rows behind the last one are other memory, and are not stored.
    for (const auto& [name, constant] : {std::pair{"key", "KEY"}, {"value", "VALUE"}}) {
      const std::string base = std::string(name) + "_base";
      line("let " + base + " = place(" + constant + ", batch, kv_head, first + down * 4u);");
      each_row("let " + std::string(name) + "# = " + base + " + #u * row_stride(" + constant + ");");
    }
    zero_sums("o", kernel_.head_columns);
    zero_sums("e", kernel_.value_columns);
    line("let query_stride = row_stride(QUERY);");
    line("let grad_stride = row_stride(GRAD);");
    line("for (var head = kv_head * group(); head < (kv_head + 1u) * group(); head++) {");
    line("let query_base = place(QUERY, batch, head, 0u);");
    line("let grad_base = place(GRAD, batch, head, 0u);");
    line("let walk = walk_queries(batch, head, strip, first);");
    line("for (var step = walk.begin; step < walk.end; step++) {");
    line("let span = queries_at(walk, step);");
    line("if (FLEX && span.first >= span.end) { continue; }");
    product("s", "key", "query", "head_quads", kernel_.head_columns);
    product("t", "value", "grad", "value_quads", kernel_.value_columns);
    line("let columns = columns_of(span.first, lane);");
    line("let inside = min(columns, vec4<u32>(queries() - 1u));");
    line("let numbers = query_number(batch, head, 0u) + inside;");
    const auto of_numbers = [](const std::string& function) {
      return four([&](uint32_t j) { return function + "(numbers." + kParts[j] + ")"; });
    };
    line("let log_sum = log_unit() * " + of_numbers("load_log_sum") + ";");
    line("let divisor = " + four([](uint32_t j) { return std::string("divisor_of(log_sum.") + kParts[j] + ")"; }) +
         ";");
    line("let delta = " + of_numbers("load_delta") + ";");
    as_vectors("x", "s", " * scale()");
    as_vectors("slope", "t", "");
    for (uint32_t i = 0; i < kRows; ++i) score_of_key(i);
    pass_on("x");
    barrier();
    fold_back("e", "grad", kernel_.value_columns);
    for (uint32_t slice = 0; slice < slices(kernel_.head_columns); ++slice) {
      const std::string name = "o_" + text(slice) + "_";
      fetch(name, "query", slice, "other");
      barrier();
      if (slice == 0) pass_on("slope");
      stage(name, "other");
      barrier();
      fold("o", kernel_.head_columns, slice);
    }
    line("}");
    line("}");
    each_row("let first# = place(FIRST, batch, kv_head, first + down * 4u + #u);");
    store_rows("first", "first", "o", kernel_.head_columns, "end", "");
    each_row("let second# = place(SECOND, batch, kv_head, first + down * 4u + #u);");
    store_rows("second", "second", "e", kernel_.value_columns, "end", "vec4<f32>(1.0)");
  }

  void score_of_key(uint32_t i) {
    const std::string x = "x" + text(i), slope = "slope" + text(i), key = "key_row" + text(i);
    line("let " + key + " = min(first + down * 4u + " + number(i) + ", keys() - 1u);");
    if (kernel_.flex) {
      line("let score" + text(i) + " = " + x + ";");
      const std::string call = "_column(score" + text(i) + ", batch, head, columns, " + key + ", ";
      line(x + " = fading(flex_scores" + call + "span) - divisor);");
      line(slope + " = flex_slopes" + call + x + " * (" + slope + " - delta));");
      return;
    }
    if (kernel_.mask) {
      line(x +
           " += load_mask_column(vec4<u32>(place(MASKS, batch, head, inside.x), place(MASKS, batch, head, inside.y),");
      line("    place(MASKS, batch, head, inside.z), place(MASKS, batch, head, inside.w)), " + key + ");");
    }
    line(x + " = fading(" + x + " - divisor);");
    if (i == 0) line("let partly = span.first + TILE > queries() || (causal() && span.first < first + BLOCK - 1u);");
    line("if (partly) {");
    line(x + " = select(vec4<f32>(), " + x + ", (columns < vec4<u32>(queries())) &");
    line("    (vec4<bool>(!causal()) | (vec4<u32>(" + key + ") <= columns)));");
    line("}");
    line("let stay" + text(i) + " = kept_column(vec4<f32>(keep_scale()), numbers, " + key + ");");
    line(slope + " = " + x + " * (" + slope + " * stay" + text(i) + " - delta);");
    line(x + " *= stay" + text(i) + ";");
  }

  const StagedAttention& kernel_;
  const uint32_t step_, loaded_rows_;
  std::string text_;
};

}  // namespace

std::string print_attention_staged(const StagedAttention& kernel) { return Printer(kernel).print(); }

}  // namespace torch_webgpu
