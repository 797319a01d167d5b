#include "shader/matmul_tile.h"

#include <algorithm>
#include <vector>

namespace torch_webgpu {
namespace {

constexpr char kParts[] = "xyzw";

std::string number(uint32_t value) { return std::to_string(value) + "u"; }
std::string text(uint32_t value) { return std::to_string(value); }

// An array of arrays. Each part of an index that is known when printing has a dimension of its own: WGSL's check of the
// rest is then the same for every access and leaves the loop, and what is known becomes the offset of an instruction.
std::string nested(std::string type, std::initializer_list<uint32_t> sizes) {
  for (const auto* size = sizes.end(); size != sizes.begin();) {
    type = "array<" + type + ", " + text(*--size) + ">";
  }
  return type;
}

// How one operand's slices get into workgroup memory: as lines of equal step, in quads of four neighbouring lines.
class Side {
 public:
  Side(const MatmulSide& side, const MatmulTile& tile, uint32_t slice, bool packed)
      : name_(1, side.name),
        side_(side),
        packed_(packed),
        across_(side.walk == Walk::across || side.walk == Walk::elements_across),
        quads_in_memory_(side.walk == Walk::along || side.walk == Walk::across),
        slice_(slice),
        lanes_(tile.lanes()),
        wide_(side.name == 'a' ? tile.rows : tile.columns),
        quads_(wide_ / 4),
        quads_of_lane_((side.name == 'a' ? tile.lane_rows : tile.lane_columns) / 4),
        threads_(quads_ / quads_of_lane_),
        steps_(slice / 4),
        // Stored by columns, neighbours would meet in a bank: each step puts its quads elsewhere.
        turn_(std::max(1u, (packed ? 16u : 8u) / steps_)),
        loads_(wide_ * slice / 4 / lanes_),
        rows_(across_ ? lanes_ / quads_ : 0),
        block_(!across_ && loads_ % 4 == 0),
        first_(side.name == 'a' ? "first_row" : "first_column"),
        lane_(side.name == 'a' ? "ty" : "tx") {}

  std::string declare(uint32_t buffers) const {
    std::string type = across_ ? nested(word(), {loads_, rows_, quads_of_lane_, threads_})
                               : nested(word(), {steps_, 4, quads_of_lane_, threads_});
    if (buffers > 1) type = nested(type, {buffers});
    return "var<workgroup> slice_" + name_ + ": " + type + ";\n";
  }

  // Where this lane loads from and stores to.
  std::string setup() const {
    if (is_gathered()) return across_ ? setup_gathered() : setup_gathered() + places();
    const std::string last = std::string(side_.limit) + "() - 1u";
    if (across_) {
      std::string result = let("x", "lane % " + number(quads_)) + let("k", "lane / " + number(quads_));
      result += let("step", quads_in_memory_ ? side_.step + " >> 2u" : side_.step);
      const std::string line = first_ + " + " + name_ + "_x * 4u";
      if (quads_in_memory_) {
        result += let("line", at("min(" + line + ", (" + last + ") & ~3u)") + " >> 2u");
      } else {
        for (uint32_t i = 0; i < 4; ++i) {
          result += let("line" + text(i), at("min(" + line + " + " + number(i) + ", " + last + ")"));
        }
      }
      return result + "  var " + name_ + "_at = (start + " + name_ + "_k) * " + name_ + "_step;\n";
    }
    std::string result = let("k", "lane % " + number(steps_) + " * 4u");
    for (uint32_t v = 0; v < loads_; ++v) {
      const std::string place = at("min(" + first_ + " + " + line_of(v) + ", " + last + ")");
      result += let("line" + text(v), quads_in_memory_ ? place + " >> 2u" : place);
    }
    return result + places();
  }

  // The loads of a slice. The first one begins early, by the steps that the last one would lack: there are zeros, and
  // the loop over all others has neither comparisons nor clamps.
  std::string load(bool first) const {
    std::string result = is_gathered() ? steps(first) : "";
    for (uint32_t v = 0; v < loads_; ++v) {
      const std::string within = within_of(v);
      const std::string value = is_gathered()      ? gathered(v)
                                : quads_in_memory_ ? quad(v, within, first)
                                                   : elements(v, within, first);
      const bool by_element = !across_ && !quads_in_memory_;
      const std::string begun =
          by_element ? "vec4<u32>(" + within + ") + vec4<u32>(0u, 1u, 2u, 3u) >= vec4<u32>(pad)" : within + " >= pad";
      result += "  let " + reg(v) + " = " +
                (first ? std::string("select(") + word() + "(), " + value + ", " + begun + ")" : value) + ";\n";
    }
    return result;
  }

  std::string advance() const {
    return across_ && !is_gathered() ? "  " + name_ + "_at += " + number(slice_) + " * " + name_ + "_step;\n" : "";
  }

  std::string store(const std::string& buffer) const {
    std::string result;
    const std::string memory = "  slice_" + name_ + buffer;
    for (uint32_t v = 0; v < loads_; v += block_ ? 4 : 1) {
      if (across_) {
        result += memory + "[" + text(v) + "][" + name_ + "_k][" + name_ + "_x / " + number(threads_) + "][" + name_ +
                  "_x % " + number(threads_) + "] = " + reg(v) + ";\n";
        continue;
      }
      for (uint32_t j = 0; j < 4; ++j) {
        const std::string put = name_ + "_put" + text(v);
        const std::string place = memory + "[lane % " + number(steps_) + "][" + text(j) + "][" + put + " / " +
                                  number(threads_) + "][" + put + " % " + number(threads_) + "]";
        result += block_ ? place + " = " + turned(v, j) + ";\n"
                         : place + "[(lane + " + number(v * lanes_) + ") / " + number(steps_) + " % 4u] = " + reg(v) +
                               "." + kParts[j] + ";\n";
      }
    }
    return result;
  }

  // The lane's i-th quad of a step, as floats.
  std::string get(uint32_t k, uint32_t i, const std::string& buffer) const {
    std::string value = "slice_" + name_ + buffer;
    if (across_) {
      value += "[" + text(k / rows_) + "][" + text(k % rows_) + "][" + text(i) + "][" + lane_ + "]";
    } else {
      const uint32_t turned = k / 4 * turn_ % quads_;
      value += "[" + text(k / 4) + "][" + text(k % 4) + "][" + text(i ^ (turned / threads_)) + "][" + lane_ + " ^ " +
               number(turned % threads_) + "]";
    }
    return packed_ ? "unpacked(" + value + ")" : value;
  }

  uint32_t quads_of_lane() const { return quads_of_lane_; }

 private:
  const char* word() const { return packed_ ? "vec2<u32>" : "vec4<f32>"; }
  std::string reg(uint32_t v) const { return name_ + text(v); }
  std::string let(const std::string& name, const std::string& value) const {
    return "  let " + name_ + "_" + name + " = " + value + ";\n";
  }
  std::string at(const std::string& line) const { return "at_" + name_ + "(batch, " + line + ", 0u)"; }
  std::string line_of(uint32_t v) const {
    return block_ ? "(lane + " + number(v / 4 * lanes_) + ") / " + number(steps_) + " * 4u + " + number(v % 4)
                  : "(lane + " + number(v * lanes_) + ") / " + number(steps_);
  }

  bool is_gathered() const { return !side_.gathered.empty(); }
  std::string within_of(uint32_t v) const { return across_ && v ? name_ + "_k + " + number(v * rows_) : name_ + "_k"; }

  // Where lines are loaded along their steps: the quads of workgroup memory.
  std::string places() const {
    std::string result;
    for (uint32_t v = 0; v < loads_; v += block_ ? 4 : 1) {
      const std::string quad = block_ ? "(lane + " + number(v / 4 * lanes_) + ") / " + number(steps_)
                                      : "(lane + " + number(v * lanes_) + ") / " + number(4 * steps_);
      result += let("put" + text(v), "(" + quad + ") ^ (lane % " + number(steps_) + " * " + number(turn_) + " % " +
                                         number(quads_) + ")");
    }
    return result;
  }

  // Of gathered operands: a lane has so many steps of a slice, and lines, at each of which it loads.
  uint32_t gathered_steps() const { return across_ ? loads_ : quads_in_memory_ ? 1 : 4; }
  uint32_t gathered_lines() const { return !across_ ? loads_ : quads_in_memory_ ? 1 : 4; }
  std::string gathered_within(uint32_t n) const { return across_ ? within_of(n) : name_ + "_k + " + number(n); }

  std::string setup_gathered() const {
    std::string result;
    if (across_) result += let("x", "lane % " + number(quads_));
    result += let("k", across_ ? "lane / " + number(quads_) : "lane % " + number(steps_) + " * 4u");
    for (uint32_t n = 0; n < gathered_lines(); ++n) {
      const std::string line = across_ ? name_ + "_x * 4u + " + number(n) : line_of(n);
      result += let("line" + text(n), side_.gathered + "_line(batch, " + first_ + " + " + line + ")");
    }
    for (uint32_t n = 0; n < gathered_steps(); ++n) {
      result += let("in" + text(n), side_.gathered + "_within(" + gathered_within(n) + ")");
    }
    return result;
  }

  // The walk is at the first slice's own first step.
  std::string steps(bool first) const {
    std::string result;
    for (uint32_t n = 0; n < gathered_steps(); ++n) {
      const std::string within =
          first ? side_.gathered + "_within(max(" + gathered_within(n) + ", pad) - pad)" : name_ + "_in" + text(n);
      result += let("step" + text(n), side_.gathered + "_step(walk, " + within + ")");
    }
    return result;
  }

  std::string gathered(uint32_t v) const {
    const auto element = [&](uint32_t line, uint32_t step) {
      const std::string place = "(" + name_ + "_line" + text(line) + ", " + name_ + "_step" + text(step) + ")";
      const std::string at = side_.gathered + "_at" + place;
      const std::string raw = side_.memory.element(at + " >> 2u");
      const std::string value = !quads_in_memory_ ? "element_" + name_ + "(" + at + ")"
                                : packed_         ? raw
                                                  : "floats_" + name_ + "(" + raw + ")";
      return std::string("select(") + (quads_in_memory_ ? word() : "f32") + "(), " + value + ", " + side_.gathered +
             "_inside" + place + ")";
    };
    if (quads_in_memory_) return across_ ? element(0, v) : element(v, 0);
    std::string result = "vec4<f32>(";
    for (uint32_t i = 0; i < 4; ++i) result += (i ? ", " : "") + (across_ ? element(i, v) : element(v, i));
    return result + ")";
  }

  // The step to load: steps before the first are the first, and cleared afterwards.
  static std::string clamped(const std::string& within, bool first) {
    return first ? "(start + max(" + within + ", pad))" : "(start + " + within + ")";
  }
  std::string row(uint32_t v, const std::string& within, bool first) const {
    if (first) return clamped(within, true) + " * " + name_ + "_step";
    return v ? name_ + "_at + " + number(v * rows_) + " * " + name_ + "_step" : name_ + "_at";
  }

  std::string quad(uint32_t v, const std::string& within, bool first) const {
    const std::string index = across_ ? row(v, within, first) + " + " + name_ + "_line"
                                      : name_ + "_line" + text(v) + " + (" + clamped(within, first) + " >> 2u)";
    const std::string raw = side_.memory.element(index);
    return packed_ ? raw : "floats_" + name_ + "(" + raw + ")";
  }

  std::string elements(uint32_t v, const std::string& within, bool first) const {
    std::string result = "vec4<f32>(";
    for (uint32_t i = 0; i < 4; ++i) {
      const std::string line = name_ + "_line" + text(across_ ? i : v);
      const std::string step = i && !across_ ? within + " + " + number(i) : within;
      const std::string index =
          line + " + " + (across_ ? row(v, within, first) : clamped(step, first) + " * " + side_.step);
      result += std::string(i ? ", " : "") + "element_" + name_ + "(" + index + ")";
    }
    return result + ")";
  }

  // Four loads hold four steps of four lines: the lines' parts of step j.
  std::string turned(uint32_t v, uint32_t j) const {
    if (!packed_) {
      std::string result = "vec4<f32>(";
      for (uint32_t i = 0; i < 4; ++i) result += std::string(i ? ", " : "") + reg(v + i) + "." + kParts[j];
      return result + ")";
    }
    const auto pair = [&](uint32_t i) {
      const std::string part = std::string(".") + kParts[j / 2], low = reg(v + i) + part, high = reg(v + i + 1) + part;
      return j % 2 ? "(" + low + " >> 16u) | (" + high + " & 0xffff0000u)"
                   : "(" + low + " & 0xffffu) | (" + high + " << 16u)";
    };
    return "vec2<u32>(" + pair(0) + ", " + pair(2) + ")";
  }

  const std::string name_;
  const MatmulSide& side_;
  const bool packed_, across_, quads_in_memory_;
  const uint32_t slice_, lanes_, wide_, quads_, quads_of_lane_, threads_, steps_, turn_, loads_, rows_;
  const bool block_;
  const std::string first_, lane_;
};

// Functions that load from an operand: a quad's floats, and one element.
std::string loads_of(const MatmulSide& side) {
  const std::string name(1, side.name);
  if (side.walk == Walk::along || side.walk == Walk::across) {
    return "fn floats_" + name + "(q: " + side.memory.array + ") -> vec4<f32> { return " +
           floats_of_quad(side.dtype, "q") + "; }\n";
  }
  return "fn element_" + name + "(at: u32) -> f32 { return " +
         from_raw(side.dtype, Compute::f32, side.memory.load("at")) + "; }\n";
}

std::string indented(const std::string& lines) {
  std::string result;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find('\n', at) + 1;
    result += "  " + lines.substr(at, end - at);
    at = end;
  }
  return result;
}

std::string entry(uint32_t lanes) {
  return "@compute @workgroup_size(" + text(lanes) +
         ")\nfn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {\n"
         "  take_params();\n  let batch = group.z;\n";
}

// The products of all steps of a slice, added to the lane's sums.
std::string products(const Side& a, const Side& b, uint32_t lane_rows, uint32_t slice, const std::string& buffer) {
  std::string result;
  for (uint32_t k = 0; k < slice; ++k) {
    const std::string step = text(k) + "_";
    for (uint32_t i = 0; i < a.quads_of_lane(); ++i) {
      result += "  let av" + step + text(i) + " = " + a.get(k, i, buffer) + ";\n";
    }
    for (uint32_t j = 0; j < b.quads_of_lane(); ++j) {
      result += "  let bv" + step + text(j) + " = " + b.get(k, j, buffer) + ";\n";
    }
    for (uint32_t i = 0; i < lane_rows; ++i) {
      for (uint32_t j = 0; j < b.quads_of_lane(); ++j) {
        const std::string sum = "sum" + text(i) + "_" + text(j);
        result += "  " + sum + " = fma(vec4<f32>(av" + step + text(i / 4) + "." + kParts[i % 4] + "), bv" + step +
                  text(j) + ", " + sum + ");\n";
      }
    }
  }
  return result;
}

}  // namespace

bool stay_packed(const MatmulTile& tile, DType a, Walk walk_a, DType b, Walk walk_b) {
  const auto halves = [](DType dtype, Walk walk) {
    return dtype == DType::f16 && (walk == Walk::along || walk == Walk::across);
  };
  return halves(a, walk_a) && halves(b, walk_b) && tile.buffers == 1;
}

std::string packed_quad_of_floats(DType dtype, const std::string& value) {
  switch (dtype) {
    case DType::f16: return "pack_f16(" + value + ")";
    case DType::bf16: return "pack_bf16(" + value + ")";
    default: return quad_of_floats(dtype, value);
  }
}

std::string print_matmul_tile(const MatmulTile& tile, const MatmulSide& side_a, const MatmulSide& side_b) {
  const bool packed = stay_packed(tile, side_a.dtype, side_a.walk, side_b.dtype, side_b.walk);
  const uint32_t slice = packed ? tile.half_slice : tile.slice;
  const bool gathered = !side_a.gathered.empty();
  const Side a(side_a, tile, slice, packed), b(side_b, tile, slice, packed);
  const uint32_t across = tile.columns / tile.lane_columns, down = tile.rows / tile.lane_rows;
  std::string result = loads_of(side_a) + loads_of(side_b) + a.declare(tile.buffers) + b.declare(tile.buffers);
  if (packed) {
    result +=
        "fn unpacked(v: vec2<u32>) -> vec4<f32> {\n"
        "  return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y));\n}\n";
  }
  if (gathered) result += "const SLICE = " + number(slice) + ";\n";
  result += "\n" + entry(tile.lanes()) + "  let steps = " + (gathered ? "depth_of(batch)" : "depth()") +
            ";\n  let first_row = group.y * " + number(tile.rows) + ";\n  let first_column = group.x * " +
            number(tile.columns) + ";\n  let tx = lane % " + number(across) + ";\n  let ty = lane / " + number(across) +
            ";\n  let slices = (steps + " + number(slice - 1) + ") / " + number(slice) + ";\n  let pad = slices * " +
            number(slice) + " - steps;\n" +
            (gathered ? "  var walk = walk_at(batch, 0u);\n" : "  var start = 0u - pad;\n");
  result += a.setup() + b.setup() + a.load(true) + b.load(true);
  if (gathered) result += "  walk = walk_at(batch, SLICE - pad);\n";
  const uint32_t quads = tile.lane_columns / 4;
  for (uint32_t i = 0; i < tile.lane_rows; ++i) {
    for (uint32_t j = 0; j < quads; ++j) result += "  var sum" + text(i) + "_" + text(j) + " = vec4<f32>();\n";
  }
  // The next slice is under way while this one is used. One more than there is may be loaded: a condition, or a
  // variable that goes around the loop, makes compilers move what was loaded between registers, and so wait for it at
  // once.
  const bool twice = tile.buffers > 1;
  const std::string barrier = "workgroupBarrier();\n", now = twice ? "[now]" : "";
  result += a.store(twice ? "[0]" : "") + b.store(twice ? "[0]" : "") + "  " + barrier;
  if (twice) result += "  var now = 0u;\n";
  result += "  for (var s = 0u; s < slices; s++) {\n" + (gathered ? "" : "    start += " + number(slice) + ";\n") +
            indented(a.advance() + b.advance() + a.load(false) + b.load(false)) +
            (gathered ? "    walk = next_walk(walk);\n" : "") + indented(products(a, b, tile.lane_rows, slice, now));
  result += twice ? "    now = 1u - now;\n" : "    " + barrier;
  result += indented(a.store(now) + b.store(now)) + "    " + barrier + "  }\n";
  const auto column = [&](uint32_t j) { return "first_column + " + number(j * across * 4) + " + tx * 4u"; };
  // Where gathered results lie is computed once for all rows.
  for (uint32_t j = 0; j < quads && gathered; ++j) {
    result += "  let places" + text(j) + " = places_of(batch, " + column(j) + ");\n";
  }
  for (uint32_t i = 0; i < tile.lane_rows; ++i) {
    const std::string row = "row" + text(i);
    result += "  let " + row + " = first_row + " + number(i / 4 * down * 4 + i % 4) + " + ty * 4u;\n  if (" + row +
              " < rows()) {\n";
    for (uint32_t j = 0; j < quads; ++j) {
      result += "    store_four(batch, " + row + ", " + column(j) + ", sum" + text(i) + "_" + text(j) + ", " +
                (gathered ? "places" + text(j) : "four_of_c(batch, " + row + ", " + column(j) + ")") + ");\n";
    }
    result += "  }\n";
  }
  return result + "}\n";
}

std::string print_matmul_thin_along(uint32_t rows, bool a_in_quads, bool b_in_quads) {
  const uint32_t lanes = 64, teams = lanes / kThinTeam, unroll = rows > 4 ? 1 : 2;
  const uint32_t sums = rows * kThinLines, round = std::min(kThinTeam, sums);
  std::string result = "var<workgroup> joined: " + nested("f32", {round, lanes}) + ";\n\n" + entry(lanes);
  result += "  let steps = (depth() + 3u) / 4u;\n  let blocks = steps / " + number(kThinTeam * unroll) +
            ";\n  let rest = steps - blocks * " + number(kThinTeam * unroll) + ";\n  var k = lane % " +
            number(kThinTeam) + ";\n  let first = group.x * " + number(teams * kThinLines) + " + lane / " +
            number(kThinTeam) + ";\n";
  const auto line = [](char name, uint32_t i, const std::string& place, const char* limit, bool quads) {
    return std::string("  let line_") + name + text(i) + " = at_" + name + "(batch, min(" + place + ", " + limit +
           "() - 1u), 0u)" + (quads ? " >> 2u" : "") + ";\n";
  };
  for (uint32_t i = 0; i < rows; ++i) result += line('a', i, number(i), "rows", a_in_quads);
  for (uint32_t i = 0; i < kThinLines; ++i) {
    result += line('b', i, "first + " + number(i * teams), "columns", b_in_quads);
  }
  for (uint32_t i = 0; i < sums; ++i) result += "  var sum" + text(i) + " = 0.0;\n";
  const auto loads = [&](uint32_t turn) {
    std::string code;
    const std::string k = "k + " + number(turn * kThinTeam);
    for (uint32_t i = 0; i < kThinLines; ++i) {
      code += "    let b" + text(turn) + "_" + text(i) + " = four_b(line_b" + text(i) + ", step_b(), " + k +
              ", depth());\n";
    }
    for (uint32_t i = 0; i < rows; ++i) {
      code += "    let a" + text(turn) + "_" + text(i) + " = four_a(line_a" + text(i) + ", step_a(), " + k +
              ", depth());\n";
    }
    return code;
  };
  const auto products = [&](uint32_t turn) {
    std::string code;
    for (uint32_t part = 0; part < 4; ++part) {
      for (uint32_t i = 0; i < sums; ++i) {
        const std::string sum = "sum" + text(i), p = std::string(".") + kParts[part];
        code += "    " + sum + " = fma(a" + text(turn) + "_" + text(i / kThinLines) + p + ", b" + text(turn) + "_" +
                text(i % kThinLines) + p + ", " + sum + ");\n";
      }
    }
    return code;
  };
  result += "  for (var i = 0u; i < blocks; i++) {\n";
  for (uint32_t turn = 0; turn < unroll; ++turn) result += loads(turn);
  for (uint32_t turn = 0; turn < unroll; ++turn) result += products(turn);
  result += "    k += " + number(kThinTeam * unroll) + ";\n  }\n";
  result += "  for (var i = lane % " + number(kThinTeam) + "; i < rest; i += " + number(kThinTeam) + ") {\n" +
            loads(0) + products(0) + "    k += " + number(kThinTeam) + ";\n  }\n";
  // A team's sums are added a round at a time, one by each lane.
  for (uint32_t begin = 0; begin < sums; begin += round) {
    if (begin) result += "  workgroupBarrier();\n";
    for (uint32_t i = 0; i < round; ++i) result += "  joined[" + text(i) + "][lane] = sum" + text(begin + i) + ";\n";
    result += "  workgroupBarrier();\n  if (lane / " + number(teams) + " < " + number(round) +
              ") {\n    let place = lane / " + number(teams) + ";\n    let own = lane % " + number(teams) + " * " +
              number(kThinTeam) + ";\n    let row = (place + " + number(begin) + ") / " + number(kThinLines) +
              ";\n    let column = group.x * " + number(teams * kThinLines) + " + place % " + number(kThinLines) +
              " * " + number(teams) + " + lane % " + number(teams) +
              ";\n    if (row < rows() && column < columns()) {\n      store(batch, row, column, ";
    for (uint32_t i = 0; i < kThinTeam; ++i) {
      result +=
          std::string(i ? " + " : "") + "joined[place][own + (lane + " + number(i) + ") % " + number(kThinTeam) + "]";
    }
    result += ");\n    }\n  }\n";
  }
  return result + "}\n";
}

std::string print_matmul_thin_across(uint32_t rows, bool a_in_quads) {
  const uint32_t team = thin_team(rows), teams = kThinLanes / team, unroll = rows > 1 ? 1 : 2,
                 round = std::min(rows, 2u);
  std::string result =
      "var<workgroup> joined: " + nested("vec4<f32>", {round, teams, team}) + ";\n\n" + entry(kThinLanes);
  result += "  let steps = (depth() + 3u) / 4u;\n  let blocks = steps / " + number(teams * unroll) +
            ";\n  let team = lane / " + number(team) + ";\n  var k = team;\n  let column = group.x * " +
            number(4 * team) + " + lane % " + number(team) +
            " * 4u;\n  let line_b = at_b(batch, min(column, (columns() - 1u) & ~3u), 0u) >> 2u;\n";
  for (uint32_t i = 0; i < rows; ++i) {
    result += "  let line_a" + text(i) + " = at_a(batch, min(" + number(i) + ", rows() - 1u), 0u)" +
              (a_in_quads ? " >> 2u" : "") + ";\n  var sum" + text(i) + " = vec4<f32>();\n";
  }
  const auto loads = [&](uint32_t turn) {
    std::string code;
    const std::string k = "(k + " + number(turn * teams) + ")", t = text(turn) + "_";
    for (uint32_t i = 0; i < 4; ++i) {
      code += "    let b" + t + text(i) + " = four_b(line_b, step_b(), " + k + " * 4u + " + number(i) + ", depth());\n";
    }
    for (uint32_t i = 0; i < rows; ++i) {
      code += "    let a" + t + text(i) + " = four_a(line_a" + text(i) + ", step_a(), " + k + ", depth());\n";
    }
    return code;
  };
  const auto products = [&](uint32_t turn) {
    std::string code;
    const std::string t = text(turn) + "_";
    for (uint32_t i = 0; i < 4; ++i) {
      for (uint32_t row = 0; row < rows; ++row) {
        const std::string sum = "sum" + text(row);
        code += "    " + sum + " = fma(vec4<f32>(a" + t + text(row) + "." + kParts[i] + "), b" + t + text(i) + ", " +
                sum + ");\n";
      }
    }
    return code;
  };
  result += "  for (var i = 0u; i < blocks; i++) {\n";
  for (uint32_t turn = 0; turn < unroll; ++turn) result += loads(turn);
  for (uint32_t turn = 0; turn < unroll; ++turn) result += products(turn);
  result += "    k += " + number(teams * unroll) + ";\n  }\n  for (; k < steps; k += " + number(teams) + ") {\n" +
            loads(0) + products(0) + "  }\n";
  for (uint32_t begin = 0; begin < rows; begin += round) {
    if (begin) result += "  workgroupBarrier();\n";
    for (uint32_t i = 0; i < round; ++i) {
      result += "  joined[" + text(i) + "][team][lane % " + number(team) + "] = sum" + text(begin + i) + ";\n";
    }
    result += "  workgroupBarrier();\n  if (team < " + number(round) + " && team + " + number(begin) +
              " < rows()) {\n    let row = team + " + number(begin) + ";\n    let place = lane % " + number(team) +
              ";\n    let sum = ";
    for (uint32_t t = 0; t < teams; ++t) {
      result += std::string(t ? " + " : "") + "joined[team][" + text(t) + "][place]";
    }
    result += ";\n    store_four(batch, row, column, sum, four_of_c(batch, row, column));\n  }\n";
  }
  return result + "}\n";
}

std::string print_matmul_join(const MatmulSide& parts, bool in_quads) {
  const uint32_t teams = 4, unroll = 4;
  std::string result = "var<workgroup> joined: " + nested("vec4<f32>", {teams, kJoinQuads}) + ";\n\n";
  if (in_quads) {
    result +=
        "fn part_of(at: u32) -> vec4<f32> { return bitcast<vec4<f32>>(" + parts.memory.element("at >> 2u") + "); }\n";
  } else {
    result += "fn part_of(at: u32) -> vec4<f32> {\n  return bitcast<vec4<f32>>(vec4<u32>(";
    for (uint32_t i = 0; i < 4; ++i) {
      result += std::string(i ? ", " : "") + parts.memory.load(i ? "at + " + number(i) : "at");
    }
    result += "));\n}\n";
  }
  result +=
      entry(teams * kJoinQuads) + "  let quads_of_row = (columns() + 3u) / 4u;\n  let place = lane % " +
      number(kJoinQuads) + ";\n  let quad = group.x * " + number(kJoinQuads) +
      " + place;\n  let row = quad / quads_of_row;\n" +
      "  let column = (quad - row * quads_of_row) * 4u;\n  let team = lane / " + number(kJoinQuads) +
      ";\n  let size = rows() * columns();\n  let at = at_a(0u, 0u, 0u) + min(row, rows() - 1u) * columns() + column;\n"
      "  var sum = vec4<f32>();\n  var part = team;\n";
  result +=
      "  for (; part + " + number(teams * (unroll - 1)) + " < depth(); part += " + number(teams * unroll) + ") {\n";
  for (uint32_t i = 0; i < unroll; ++i) {
    result += "    let part" + text(i) + " = part_of(at + (part + " + number(i * teams) + ") * size);\n";
  }
  result += "    sum += (part0 + part1) + (part2 + part3);\n  }\n";
  result += "  for (; part < depth(); part += " + number(teams) + ") { sum += part_of(at + part * size); }\n";
  result +=
      "  joined[team][place] = sum;\n  workgroupBarrier();\n  if (team == 0u && row < rows()) {\n"
      "    let all = (joined[0][place] + joined[1][place]) + (joined[2][place] + joined[3][place]);\n"
      "    store_four(batch, row, column, all, four_of_c(batch, row, column));\n  }\n}\n";
  return result;
}

}  // namespace torch_webgpu
