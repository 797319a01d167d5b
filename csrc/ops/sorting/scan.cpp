#include "ops/sorting/scan.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/cumprod_meta.h>
#include <ATen/ops/cumsum_meta.h>
#include <torch/library.h>

#include <algorithm>

#include "families/lines.h"
#include "families/program.h"
#include "families/structured.h"
#include "families/windows.h"
#include "ops/native.h"

namespace torch_webgpu {
namespace {

struct ScanRow {
  Program scan, quads, parts;
  Program group, group_quads;  // a workgroup per block, on GPUs
};

// An accumulator has a value and a word beside it: an index, or a second number's bits.
#define ACCUMULATOR(identity, map, combine, finish) \
  "struct Acc { x: T, y: u32 }\n"                   \
  "fn identity() -> Acc { return Acc(" identity     \
  "); }\n"                                          \
  "fn map(a: T, i: u32) -> Acc { return Acc(" map   \
  "); }\n"                                          \
  "fn combine(p: Acc, q: Acc) -> Acc { " combine    \
  " }\n"                                            \
  "fn finish(p: Acc) -> T { " finish " }\n"

constexpr ScanRow scan_row(const char* name, const char* text) {
  return {
      make_program(name, "scan", "T:input T:output! i:index! T:part! u:tag!", "length inner blocks span carried", text),
      make_program(name, "scan_quads", "q:input q:output! w:index! T:part! u:tag!", "length blocks span carried", text),
      make_program(name, "scan_parts", "T:part! u:tag!", "blocks", text),
      make_grouped(make_program(name, "scan_group_elements", "T:input T:output! i:index! T:part! u:tag!",
                                "length blocks span", text)),
      make_grouped(make_program(name, "scan_group_quads", "q:input q:output! w:index! T:part! u:tag!",
                                "length blocks span", text))};
}

// The last of equal values wins, and NaN wins over everything.
#define LAST_BEST(better)                                                       \
  "if (q.y == 0xffffffffu) { return p; } if (p.y == 0xffffffffu) { return q; }" \
  "if (is_nan(q.x) || (!is_nan(p.x) && " better "(q.x, p.x))) { return q; } return p;"

// The greatest exponent, and the sum of exponentials below it.
#define ADD_EXPONENTIALS                                                                      \
  "let m = max(p.x, q.x); if (is_nan(m)) { return Acc(m, 0u); }"                              \
  "let a = select(exp(p.x - m), 1.0, p.x == m); let b = select(exp(q.x - m), 1.0, q.x == m);" \
  "return Acc(m, bitcast<u32>(bitcast<f32>(p.y) * a + bitcast<f32>(q.y) * b));"

//                                                         identity, map, combine, finish
constexpr ScanRow kCumsum =
    scan_row("cumsum", ACCUMULATOR("zero, 0u", "a, 0u", "return Acc(add(p.x, q.x), 0u);", "return p.x;"));
constexpr ScanRow kCumprod =
    scan_row("cumprod", ACCUMULATOR("one, 0u", "a, 0u", "return Acc(mul(p.x, q.x), 0u);", "return p.x;"));
constexpr ScanRow kCummax =
    scan_row("cummax", ACCUMULATOR("lowest(), 0xffffffffu", "a, i", LAST_BEST("ge"), "return p.x;"));
constexpr ScanRow kCummin =
    scan_row("cummin", ACCUMULATOR("highest(), 0xffffffffu", "a, i", LAST_BEST("le"), "return p.x;"));
constexpr ScanRow kLogcumsumexp =
    scan_row("logcumsumexp",
             ACCUMULATOR("lowest(), 0u", "a, bitcast<u32>(1.0f)", ADD_EXPONENTIALS,
                         "if (is_nan(p.x) || is_inf(p.x)) { return p.x; } return p.x + log(bitcast<f32>(p.y));"));

bool fit_quads(const at::Tensor& input, const at::Tensor& output, const at::Tensor& index, const Lines& lines) {
  const at::ScalarType dtype = output.scalar_type();
  const auto fits = [&](const at::Tensor& tensor) {
    return tensor.scalar_type() == dtype && tensor.storage_offset() % 4 == 0;
  };
  if (index.defined() && index.storage_offset() % 2 != 0) return false;
  return lines.inner == 1 && lines.length % 4 == 0 && (dtype == at::kFloat || dtype == at::kInt) && fits(input) &&
         fits(output);
}

void scan_lines(const ScanRow& row, const at::Tensor& input, const at::Tensor& output, const at::Tensor& index,
                const Lines& lines, at::ScalarType compute);

// The first outer lines, then the rest: for tensors that no binding holds.
void halve_lines(const ScanRow& row, const at::Tensor& input, const at::Tensor& output, const at::Tensor& index,
                 const Lines& lines, at::ScalarType compute) {
  const int64_t outer = lines.count / lines.inner, half = half_of(outer);
  for (const auto& [begin, count] : {std::pair{int64_t{0}, half}, {half, outer - half}}) {
    const auto some = [&, begin = begin, count = count](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.view({outer, -1}).narrow(0, begin, count) : tensor;
    };
    Lines part = lines;
    part.count = count * lines.inner;
    scan_lines(row, some(input), some(output), some(index), part, compute);
  }
}

constexpr uint32_t kWhole = 0, kParts = 1, kCarry = 2, kJoin = 3;

// On a GPU a workgroup walks a block of a line, with neighbouring lanes at neighbouring items.
void scan_groups(const ScanRow& row, const at::Tensor& input, const at::Tensor& output, const at::Tensor& index,
                 const Lines& lines, at::ScalarType compute, bool quads) {
  constexpr int64_t kWorkgroups = 1024;
  const int64_t length = quads ? lines.length / 4 : lines.length, step = 4 * int64_t{target().workgroup};
  const int64_t wanted = std::max<int64_t>(kWorkgroups / lines.count, 1), even = (length + wanted - 1) / wanted;
  const int64_t span = (even + step - 1) / step * step, blocks = (length + span - 1) / span;
  const auto pass = [&](uint32_t variant, const at::Tensor& target, const at::Tensor& places, const at::Tensor& part,
                        const at::Tensor& tag) {
    run(quads ? row.group_quads : row.group, compute, {lines.count * blocks, span}, {input, target, places, part, tag},
        {length, blocks, span}, variant);
  };
  if (blocks == 1) return pass(kWhole, output, index, {}, {});
  const at::Tensor part = empty_tensor({lines.count * blocks}, {}, word_dtype(compute));
  const at::Tensor tag = empty_tensor({lines.count * blocks}, {}, at::kInt);
  pass(kParts, {}, {}, part, tag);
  run(row.group, compute, {lines.count, blocks}, {{}, {}, {}, part, tag}, {blocks, 1, blocks}, kJoin);
  pass(kCarry, output, index, part, tag);
}

// Scans contiguous `input` into contiguous `output`, of 4 or 8 bytes, and the accumulators' words into `index`.
void scan_lines(const ScanRow& row, const at::Tensor& input, const at::Tensor& output, const at::Tensor& index,
                const Lines& lines, at::ScalarType compute) {
  constexpr int64_t kLeastSpan = 256;
  const bool is_large = !fits_binding(input) || !fits_binding(output) || !fits_binding(index);
  if (is_large && lines.count > lines.inner) return halve_lines(row, input, output, index, lines, compute);
  const bool quads = fit_quads(input, output, index, lines);
  if (!target().software && !is_large && lines.inner == 1 && lines.length >= kLeastSpan) {
    return scan_groups(row, input, output, index, lines, compute, quads);
  }
  const int64_t length = quads ? lines.length / 4 : lines.length;
  const int64_t wanted = std::min<int64_t>(parallel_tasks(), 1024) / std::max<int64_t>(lines.count, 1);
  const int64_t span =
      block_span(length, std::clamp<int64_t>(wanted, 1, std::max<int64_t>(lines.length / kLeastSpan, 1)));
  const int64_t blocks = (length + span - 1) / span;
  const Tasks tasks{lines.count * blocks, span};
  const auto pass = [&](uint32_t variant, const at::Tensor& target, const at::Tensor& places, const at::Tensor& part,
                        const at::Tensor& tag) {
    if (is_large && lines.count == 1 && !index.defined()) {
      // One line in pieces of so many blocks; all but the first start from the block before them.
      const int64_t unit = quads ? 4 : 1, element_bytes = std::max(input.element_size(), output.element_size()),
                    most = static_cast<int64_t>(max_binding_bytes()) / (element_bytes * unit * span) - 1;
      TORCH_INTERNAL_ASSERT(most > 0);
      const at::Tensor from = input.view({-1}), to = target.defined() ? target.view({-1}) : target;
      for (int64_t begin = 0; begin < blocks; begin += most) {
        const int64_t count = std::min(most, blocks - begin), size = std::min(count * span, length - begin * span),
                      carried = variant == kCarry && begin > 0 ? 1 : 0;
        const auto piece = [&](const at::Tensor& tensor) {
          return tensor.defined() ? tensor.narrow(0, begin * span * unit, size * unit) : tensor;
        };
        const at::Tensor some = part.narrow(0, begin - carried, count + carried),
                         beside = tag.narrow(0, begin - carried, count + carried);
        if (quads) {
          run(row.quads, compute, {count, span}, {piece(from), piece(to), {}, some, beside},
              {size, count, span, carried}, variant);
        } else {
          run(row.scan, compute, {count, span}, {piece(from), piece(to), {}, some, beside},
              {size, lines.inner, count, span, carried}, variant);
        }
      }
      return;
    }
    if (quads) {
      run(row.quads, compute, tasks, {input, target, places, part, tag}, {length, blocks, span, 0}, variant);
    } else {
      run(row.scan, compute, tasks, {input, target, places, part, tag}, {length, lines.inner, blocks, span, 0},
          variant);
    }
  };
  if (blocks == 1) return pass(kWhole, output, index, {}, {});
  const at::Tensor part = empty_tensor({tasks.count}, {}, word_dtype(compute));
  const at::Tensor tag = empty_tensor({tasks.count}, {}, at::kInt);
  pass(kParts, {}, {}, part, tag);
  run(row.parts, compute, {lines.count, blocks}, {part, tag}, {blocks});
  pass(kCarry, output, index, part, tag);
}

void scan(const ScanRow& row, const at::Tensor& self, int64_t dim, const at::Tensor& output, const at::Tensor& index) {
  const Lines lines(self, dim);
  if (self.numel() == 0) return;
  const at::ScalarType dtype = output.scalar_type(), stored = word_dtype(dtype);
  // For a narrow result the elements are cast to its dtype first.
  const at::Tensor input = (stored == dtype ? self : self.to(dtype)).contiguous();
  const auto direct = [](const at::Tensor& tensor) { return tensor.is_contiguous(); };
  const at::Tensor result = stored == dtype && direct(output) ? output : empty_tensor(output.sizes(), {}, stored);
  const at::Tensor places =
      !index.defined() || direct(index) ? index : empty_tensor(index.sizes(), {}, index.scalar_type());
  scan_lines(row, input, result, places, lines, dtype);
  if (!result.is_same(output)) output.copy_(result);
  if (index.defined() && !places.is_same(index)) index.copy_(places);
}

template <class Meta, const ScanRow& Row>
struct Scan {
  static void run(Structured<Meta>& op, const at::Tensor& self, int64_t dim, std::optional<at::ScalarType> dtype) {
    op.meta(self, dim, dtype);
    const at::Tensor& output = op.outputs[0];
    TORCH_CHECK_NOT_IMPLEMENTED(output.scalar_type() != at::kBool, "\"", Row.scan.name,
                                "_out_cpu\" not implemented for 'Bool'");
    if (self.dim() == 0) {
      output.copy_(self);
    } else {
      scan(Row, self, dim, output, {});
    }
  }
};

template <const ScanRow& Row>
void extremum(const at::Tensor& self, at::Tensor& values, at::Tensor& indices, int64_t dim) {
  scan(Row, self, dim, values, indices);
}

at::Tensor& logcumsumexp_out(const at::Tensor& self, int64_t dim, at::Tensor& out) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(self.scalar_type()), "\"logcumsumexp_out_cpu\" not implemented for '",
                              toString(self.scalar_type()), "'");
  (void)at::maybe_wrap_dim(dim, self.dim());
  at::native::resize_output(out, self.sizes());
  scan(kLogcumsumexp, self, dim, out, {});
  return out;
}

at::Tensor logcumsumexp(const at::Tensor& self, int64_t dim) {
  at::Tensor result = empty_tensor(self.sizes(), {}, self.scalar_type());
  return logcumsumexp_out(self, dim, result);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  using Cumsum = Forms<Scan<at::meta::structured_cumsum, kCumsum>>;
  using Cumprod = Forms<Scan<at::meta::structured_cumprod, kCumprod>>;
  register_forms<Cumsum>(library, "cumsum", "", "out");
  register_forms<Cumprod>(library, "cumprod", "", "out");
  native<&extremum<kCummax>>(library, "_cummax_helper");
  native<&extremum<kCummin>>(library, "_cummin_helper");
  native<&logcumsumexp>(library, "_logcumsumexp");
  native<&logcumsumexp_out>(library, "_logcumsumexp.out");
}

}  // namespace

at::Tensor running_counts(const at::Tensor& counts) {
  const at::Tensor result = empty_tensor(counts.sizes(), {}, at::kInt);
  scan_lines(kCumsum, counts, result, {}, Lines(counts, 0), at::kInt);
  return result;
}

}  // namespace torch_webgpu
