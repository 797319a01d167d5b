#include "families/reduce.h"

#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <bitset>
#include <optional>

#include "families/windows.h"
#include "shader/team.h"

namespace torch_webgpu {
namespace {

struct Dim {
  int64_t size, input_stride, output_stride;
};
using Dims = c10::SmallVector<Dim, 8>;

// Merges neighbours that are walked as one; the innermost comes first.
Dims coalesce(const Dims& dims) {
  Dims merged;
  for (const Dim& dim : dims) {
    if (dim.size == 1) continue;
    if (!merged.empty()) {
      Dim& inner = merged.back();
      if (dim.input_stride == inner.input_stride * inner.size &&
          dim.output_stride == inner.output_stride * inner.size) {
        inner.size *= dim.size;
        continue;
      }
    }
    merged.push_back(dim);
  }
  return merged;
}

int64_t count(const Dims& dims) {
  int64_t total = 1;
  for (const Dim& dim : dims) total *= dim.size;
  return total;
}

KernelSource print(const Launch& launch) {
  const auto spec = spec_of<ReduceSpec>(launch);
  return {label_reduce(spec), print_reduce(spec, target())};
}

bool are_quads(int64_t value) { return value % 4 == 0; }

// One pass over accumulators or elements; what is not set here is set by the caller.
struct Pass {
  ReduceSpec spec{};
  Binding input{}, output{}, second{};
  int64_t input_offset, output_offset, second_offset = 0;
  int64_t splits = 1, total;
  uint64_t bytes = 0;
  float scalar = 0;
  Dims kept, reduced;
  at::Tensor nothing;  // bound instead of an input without memory, which is never read

  int64_t outputs() const { return count(kept); }
  int64_t length() const { return count(reduced); }

  // Whether four neighbours of the input start every step: in `inner`, which lies along memory, and anywhere else.
  bool aligned(const Dims& inner, const Dims& outer) const {
    if (!are_quads(input_offset) || !are_quads(inner[0].size)) return false;
    const auto whole = [](const Dim& dim) { return are_quads(dim.input_stride); };
    return std::all_of(inner.begin() + 1, inner.end(), whole) && std::all_of(outer.begin(), outer.end(), whole);
  }

  // Takes four elements per step where the layout allows: from here on, the input is counted in quads.
  void choose_quads() {
    const auto runs = [](const Dims& dims) { return !dims.empty() && dims[0].input_stride == 1; };
    const auto by_quads = [&](Dims& inner, Dims& outer) {
      input_offset /= 4;
      for (Dims* dims : {&inner, &outer}) {
        for (Dim& dim : *dims) dim.input_stride /= 4;
      }
      inner[0].size /= 4;
      inner[0].input_stride = 1;
    };
    if (runs(reduced) && length() >= 32) {
      if (aligned(reduced, kept)) {
        by_quads(reduced, kept);
      } else if (reduced.size() == 1) {
        spec.edges = 1;
        reduced[0].size = reduced[0].size / 4 + 2;  // a row may begin and end within a quad
      } else {
        return;
      }
      spec.quads = static_cast<uint8_t>(Quads::along);
    } else if (runs(kept) && (target().software || length() >= kLongLines)) {
      spec.lines = !target().software;
      if (!aligned(kept, reduced)) return;
      by_quads(kept, reduced);
      kept[0].output_stride *= 4;
      spec.quads = static_cast<uint8_t>(Quads::across);
      const bool small = accumulator_words(*spec.row, static_cast<Compute>(spec.compute)) == 1;
      spec.columns = target().software && small && outputs() >= 4 * tile();
    }
  }
  static constexpr int64_t kLongLines = 16;  // rows from which several lanes share them

  static int64_t tile() { return int64_t{kColumns} * target().workgroup; }

  // A workgroup per output where the reduction is long and either runs along memory or has few outputs.
  void choose_group() {
    if (spec.lines) return;
    const bool along_memory = !reduced.empty() && reduced[0].input_stride == 1;
    spec.grouped = spec.width() == Quads::along || (spec.width() == Quads::none && length() > 64 &&
                                                    (along_memory || outputs() < 16 * int64_t{target().workgroup}));
  }

  // Short rows along memory leave most lanes of a workgroup without work.
  void choose_team() {
    if (target().software || !spec.grouped || spec.width() != Quads::along) return;
    spec.team = team_of(length(), reduce_workgroup(spec, target()));
  }

  // Parts per output, so that few long reductions still fill the adapter.
  int64_t split_count() const {
    if (spec.lines) {  // about so many workgroups in all, and each lane has two times eight rows or more
      const int64_t groups = (outputs() + kSide - 1) / kSide;
      return std::clamp<int64_t>(std::min(1024 / groups, length() / 64), 1, 1024);
    }
    const bool software = target().software, across = spec.width() == Quads::across;
    if (spec.columns || (!spec.grouped && !across)) return 1;
    const int64_t wanted = !software ? 256 : across ? 128 : 16, least = (software ? 4096 : 8192) / (across ? 8 : 1);
    return std::clamp<int64_t>(std::min(wanted / outputs(), length() * (spec.quads ? 4 : 1) / least), 1, 1024);
  }

  // A software adapter gets as many workgroups as there is work for, up to a few per core.
  Chunks grid() const {
    const auto up = [](int64_t value, int64_t by) { return (value + by - 1) / by; };
    if (spec.lines) return chunks_of(up(outputs(), kSide), 1);
    if (spec.team > 0) return chunks_of(outputs(), reduce_workgroup(spec, target()) / spec.team);
    const int64_t tasks = spec.columns ? up(outputs(), tile()) : outputs() * splits;
    const uint32_t lanes = spec.grouped || spec.columns ? 1 : reduce_workgroup(spec, target());
    if (!target().software) return chunks_of(tasks, lanes);
    const int64_t groups = std::clamp<int64_t>(outputs() * length() / 1024, 1, 32);
    const int64_t chunk = up(up(tasks, groups), lanes) * lanes;
    return {static_cast<uint32_t>(up(tasks, chunk)), static_cast<uint32_t>(chunk)};
  }

  void dispatch() {
    spec.kept_rank = kept.size();
    spec.reduced_rank = reduced.size();
    const ReduceParams at(spec);
    TORCH_CHECK(at.words() <= kParamWords, "webgpu: ", spec.row->name, " has too many dimensions");
    Launch launch;
    launch.bindings[0] = output;
    launch.bindings[1] = input;
    launch.bindings[2] = second;
    launch.binding_count = spec.row->second && !spec.writes_parts ? 3 : 2;
    for (uint32_t i = 0; i < launch.binding_count; ++i) launch.windowed |= launch.bindings[i].size_bytes != 0;
    launch.param_words = at.words();
    launch.bytes = bytes;
    const auto [groups, chunk] = grid();
    launch.grid[0] = groups;
    if (spec.lines) launch.grid[1] = splits;
    uint32_t* params = launch.params;
    params[ReduceParams::kOutputs] = outputs();
    params[ReduceParams::kReduced] = length();
    params[ReduceParams::kInputOffset] = input_offset;
    params[ReduceParams::kOutputOffset] = output_offset;
    params[ReduceParams::kSplits] = splits;
    params[ReduceParams::kSpan] = (length() + splits - 1) / splits;
    params[ReduceParams::kChunk] = chunk;
    params[ReduceParams::kCount] = total;
    params[ReduceParams::kSecondOffset] = second_offset;
    std::memcpy(&params[ReduceParams::kScalar], &scalar, sizeof(scalar));
    for (size_t dim = 0; dim < kept.size(); ++dim) {
      params[at.kept_size(dim)] = kept[dim].size;
      params[at.kept_input_stride(dim)] = kept[dim].input_stride;
      params[at.kept_output_stride(dim)] = kept[dim].output_stride;
    }
    for (size_t dim = 0; dim < reduced.size(); ++dim) {
      params[at.reduced_size(dim)] = reduced[dim].size;
      params[at.reduced_stride(dim)] = reduced[dim].input_stride;
    }
    set_key(launch, Family::reduce, spec);
    launch.print = &print;
    runtime().stream.dispatch(launch);
  }

  // The second pass, over the parts that a first has written.
  void join_parts(const Buffer* parts) {
    if (spec.width() == Quads::across) {
      kept[0].size *= 4;
      kept[0].output_stride /= 4;
    }
    // The parts of an output lie side by side, or as far apart as there are outputs.
    const bool apart = spec.lines;
    int64_t stride = apart ? 1 : splits;
    for (Dim& dim : kept) {
      dim.input_stride = stride;
      stride *= dim.size;
    }
    reduced = {{splits, apart ? stride : 1, 0}};
    spec.lines = apart && splits >= kLongLines;
    spec.grouped = !target().software && !apart && splits > 64;
    splits = 1;
    spec.reads_parts = 1;
    spec.team = 0;
    spec.quads = spec.edges = 0;
    input = {parts, 0, 0};
    input_offset = 0;
    bytes = uint64_t{4} * accumulator_words(*spec.row, static_cast<Compute>(spec.compute)) * count(kept) * length();
    dispatch();
  }
};

// The one binding of a tensor, or none when no binding holds it, and its offset in there.
struct Bound {
  Binding binding;
  int64_t offset;
};
std::optional<Bound> bound(const at::Tensor& tensor) {
  const Buffer* buffer = buffer_of(tensor);
  if (!buffer || buffer->size_bytes <= max_binding_bytes()) [[likely]]
    return Bound{{buffer, 0, 0}, tensor.storage_offset()};
  Launch scratch;
  Part part = part_of(tensor);
  if (!bind_parts(scratch, {&part, 1})) return std::nullopt;
  return Bound{scratch.bindings[part.binding], offset_in(part, tensor)};
}

using Mask = std::bitset<at::dim_bitset_size>;

struct Reduction {
  const ReduceRow& row;
  at::Tensor input;
  Mask reduced;
  bool keepdim;
  at::Tensor output, second;
  at::ScalarType compute;
  double scalar;

  bool finds_index() const {
    return row.result == ReduceRow::index || (row.second && row.second_result == ReduceRow::index);
  }

  void run() const {
    Pass pass;
    if (!prepare(pass)) return halve();
    if (pass.splits == 1) {
      pass.dispatch();
      return;
    }
    const at::Tensor parts = write_parts(pass);
    pass.join_parts(buffer_of(parts));
  }

 private:
  // False when some tensor is larger than a binding.
  bool prepare(Pass& pass) const {
    if (!buffer_of(input)) pass.nothing = empty_tensor({1}, {}, at::kFloat);
    const std::optional<Bound> from = bound(pass.nothing.defined() ? pass.nothing : input), to = bound(output),
                               beside = row.second ? bound(second) : to;
    if (!from || !to || !beside) return false;
    Dims kept, folded;
    for (int64_t dim = input.dim() - 1; dim >= 0; --dim) {
      if (reduced[dim]) {
        folded.push_back({input.size(dim), input.stride(dim), 0});
      } else {
        kept.push_back({input.size(dim), input.stride(dim), output.stride(output_dim(dim))});
      }
    }
    if (!finds_index()) {
      std::stable_sort(folded.begin(), folded.end(),
                       [](const Dim& a, const Dim& b) { return a.input_stride < b.input_stride; });
    }
    pass.kept = coalesce(kept);
    pass.reduced = coalesce(folded);
    pass.total = count(folded);
    TORCH_CHECK(pass.total < (int64_t{1} << 32) && count(kept) < (int64_t{1} << 32), "webgpu: ", row.name,
                ": more than 2^32 elements");
    if (pass.total == 0) pass.reduced = {{0, 0, 0}};
    pass.bytes = input.nbytes() + output.nbytes() + (row.second ? second.nbytes() : 0);
    pass.spec.row = &row;
    pass.spec.input = static_cast<uint8_t>(kernel_dtype(input.scalar_type(), row.name));
    pass.spec.output = static_cast<uint8_t>(kernel_dtype(output.scalar_type(), row.name));
    pass.spec.compute = static_cast<uint8_t>(compute_type(kernel_dtype(compute, row.name)));
    pass.scalar = static_cast<float>(scalar);
    pass.output = to->binding;
    pass.output_offset = to->offset;
    if (row.second) {
      pass.spec.second = static_cast<uint8_t>(kernel_dtype(second.scalar_type(), row.name));
      pass.second = beside->binding;
      pass.second_offset = beside->offset;
    }
    pass.input = from->binding;
    pass.input_offset = from->offset;
    if (pass.total > 0) pass.choose_quads();
    pass.choose_group();
    pass.choose_team();
    pass.splits = pass.split_count();
    return true;
  }

  int64_t output_dim(int64_t dim) const {
    int64_t left_out = 0;
    for (int64_t d = 0; d < dim && !keepdim; ++d) left_out += reduced[d];
    return dim - left_out;
  }

  int64_t words() const { return accumulator_words(row, compute_type(kernel_dtype(compute, row.name))); }

  // The accumulators of a pass: [outputs, splits, words].
  at::Tensor write_parts(const Pass& pass) const {
    const int64_t outputs = pass.outputs() * (pass.spec.width() == Quads::across ? 4 : 1);
    const at::Tensor parts = empty_tensor({outputs, pass.splits, words()}, {}, at::kInt);
    Pass first = pass;
    first.spec.writes_parts = 1;
    first.spec.columns = 0;
    first.output = {buffer_of(parts), 0, 0};
    first.dispatch();
    return parts;
  }

  // The first positions along all reduced dimensions.
  at::Tensor first_slice() const {
    at::Tensor slice = input;
    for (int64_t dim = 0; dim < input.dim(); ++dim) {
      if (reduced[dim]) slice = slice.narrow(dim, 0, 1);
    }
    return slice;
  }

  // Whether a binding holds a tensor of these sizes and strides at any offset: bindings begin at multiples of 256
  // bytes.
  static bool fits(const at::Tensor& slice) {
    const Part part = part_of(slice);
    return part.end - part.begin + 2 * kWindowBytes <= max_binding_bytes();
  }

  // Splits the outputs, or where all of them fit a binding with one slice of the input, the reduced dimensions.
  void halve() const {
    if (finds_index() && !input.is_contiguous()) {  // indices count through the reduced dimensions in order
      Reduction dense = *this;
      dense.input = input.contiguous();
      return dense.run();
    }
    const bool outputs_fit = bound(output) && (!row.second || bound(second));
    const at::Tensor slice = first_slice(), large = !fits(slice) ? slice : !bound(output) ? output : second;
    if (outputs_fit && fits(slice)) return join_slices();
    const int64_t wide = widest_dim(large);
    if (wide < 0) throw_too_large(row.name, large);
    int64_t dim = wide;
    if (!large.is_same(slice)) {
      for (dim = 0; reduced[dim] || output_dim(dim) != wide;) ++dim;
    }
    const int64_t size = input.size(dim), half = half_of(size);
    for (const auto& [begin, length] : {std::pair{int64_t{0}, half}, {half, size - half}}) {
      Reduction part = *this;
      part.input = input.narrow(dim, begin, length);
      part.output = output.narrow(output_dim(dim), begin, length);
      if (row.second) part.second = second.narrow(output_dim(dim), begin, length);
      part.run();
    }
  }

  // Accumulators of so many slices that each fits a binding, and then their sum.
  void join_slices() const {
    std::vector<at::Tensor> slices;
    gather_parts(0, slices);
    const at::Tensor parts = at::cat(slices, 1);
    Pass pass;
    Reduction slice = *this;
    slice.input = first_slice();
    if (!slice.prepare(pass)) throw_too_large(row.name, output);
    pass.spec.quads = pass.spec.edges = pass.spec.columns = 0;
    pass.kept.clear();
    for (int64_t d = input.dim() - 1; d >= 0; --d) {
      if (!reduced[d]) pass.kept.push_back({input.size(d), 0, output.stride(output_dim(d))});
    }
    pass.total = 1;
    for (int64_t d = 0; d < input.dim(); ++d) pass.total *= reduced[d] ? input.size(d) : 1;
    pass.splits = parts.size(1);
    pass.join_parts(buffer_of(parts));
  }

  // `base` is the index of the first element in the whole.
  void gather_parts(int64_t base, std::vector<at::Tensor>& slices) const {
    Pass pass;
    if (!prepare(pass)) {
      at::Tensor along = input;
      for (int64_t d = 0; d < input.dim(); ++d) {
        if (!reduced[d]) along = along.narrow(d, 0, 1);
      }
      const int64_t dim = widest_dim(along);
      if (dim < 0) throw_too_large(row.name, input);
      const int64_t size = input.size(dim), half = half_of(size);
      int64_t inner = 1;
      for (int64_t d = dim + 1; d < input.dim(); ++d) inner *= reduced[d] ? input.size(d) : 1;
      for (const auto& [begin, length] : {std::pair{int64_t{0}, half}, {half, size - half}}) {
        Reduction part = *this;
        part.input = input.narrow(dim, begin, length);
        part.gather_parts(base + begin * inner, slices);
      }
      return;
    }
    slices.push_back(write_parts(pass));
    if (!finds_index() || base == 0) return;
    int64_t word = 0;
    for (const char* field = row.fields; *field && *field != 'u'; ++field) {
      word += *field == 'T' && compute_type(kernel_dtype(compute, row.name)) == Compute::i64 ? 2 : 1;
    }
    slices.back().select(2, word).add_(base);
  }
};

}  // namespace

void reduce(const ReduceRow& row, const at::Tensor& input, at::OptionalIntArrayRef dims, bool keepdim,
            const at::Tensor& output, at::ScalarType compute, const at::Tensor& second, double scalar) {
  if (output.numel() == 0) return;
  // WebGPU binds no buffer both for reading and for writing, nor twice for writing; out= may name a part of another's.
  // Both results are walked by the same strides.
  const bool moved = buffer_of(input) == buffer_of(output) ||
                     (row.second && (buffer_of(input) == buffer_of(second) || buffer_of(output) == buffer_of(second) ||
                                     output.strides() != second.strides()));
  if (moved) {
    const at::Tensor result = empty_tensor(output.sizes(), {}, output.scalar_type()),
                     beside = row.second ? empty_tensor(second.sizes(), {}, second.scalar_type()) : at::Tensor();
    reduce(row, input, dims, keepdim, result, compute, beside, scalar);
    output.copy_(result);
    if (row.second) second.copy_(beside);
    return;
  }
  const auto mask =
      at::dim_list_to_bitset(dims.has_value() && !dims->empty() ? dims : at::OptionalIntArrayRef(), input.dim());
  Reduction{row, input, mask, keepdim, output, second, compute, scalar}.run();
}

}  // namespace torch_webgpu
