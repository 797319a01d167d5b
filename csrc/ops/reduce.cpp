#include "ops/reduce.h"

#include <ATen/WrapDimUtilsMulti.h>

#include <algorithm>

#include "ops/launch.h"

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
  const Buffer *input, *output, *second = nullptr;
  int64_t input_offset, output_offset, second_offset = 0;
  int64_t splits = 1, total;
  float scalar = 0;
  Dims kept, reduced;

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
    } else if (target().software && runs(kept) && aligned(kept, reduced)) {
      by_quads(kept, reduced);
      kept[0].output_stride *= 4;
      spec.quads = static_cast<uint8_t>(Quads::across);
      const bool small = accumulator_words(*spec.row, static_cast<Compute>(spec.compute)) == 1;
      spec.columns = small && outputs() >= 4 * tile();
    }
  }

  static int64_t tile() { return int64_t{kColumns} * target().workgroup; }

  // A workgroup per output where the reduction is long and either runs along memory or has few outputs.
  void choose_group() {
    const bool along_memory = !reduced.empty() && reduced[0].input_stride == 1;
    spec.grouped = spec.width() == Quads::along || (spec.width() == Quads::none && length() > 64 &&
                                                    (along_memory || outputs() < 16 * int64_t{target().workgroup}));
  }

  // Parts per output, so that few long reductions still fill the adapter.
  int64_t split_count() const {
    const bool software = target().software, across = spec.width() == Quads::across;
    if (spec.columns || (!spec.grouped && !across)) return 1;
    const int64_t wanted = !software ? 256 : across ? 128 : 16, least = (software ? 4096 : 8192) / (across ? 8 : 1);
    return std::clamp<int64_t>(std::min(wanted / outputs(), length() * (spec.quads ? 4 : 1) / least), 1, 1024);
  }

  // A software adapter gets as many workgroups as there is work for, up to a few per core.
  Chunks grid() const {
    const auto up = [](int64_t value, int64_t by) { return (value + by - 1) / by; };
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
    launch.bindings[0] = {output};
    launch.bindings[1] = {input};
    launch.bindings[2] = {second};
    launch.binding_count = spec.row->second && !spec.writes_parts ? 3 : 2;
    launch.param_words = at.words();
    const auto [groups, chunk] = grid();
    launch.grid[0] = groups;
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
    int64_t stride = splits;
    for (Dim& dim : kept) {
      dim.input_stride = stride;
      stride *= dim.size;
    }
    reduced = {{splits, 1, 0}};
    splits = 1;
    spec.reads_parts = 1;
    spec.grouped = spec.quads = spec.edges = 0;
    input = parts;
    input_offset = 0;
    dispatch();
  }
};

void check_bindable(const at::Tensor& tensor, const char* op) {
  TORCH_CHECK(!buffer_of(tensor) || buffer_of(tensor)->size_bytes <= max_binding_bytes(), "webgpu: ", op,
              ": a tensor of ", tensor.storage().nbytes(),
              " bytes is larger than the adapter's maxStorageBufferBindingSize, ", max_binding_bytes(), " bytes");
}

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
  const Compute type = compute_type(kernel_dtype(compute, row.name));
  check_bindable(input, row.name);
  check_bindable(output, row.name);

  Pass pass;
  Dims kept, reduced;
  for (int64_t dim = input.dim() - 1, out = output.dim() - 1; dim >= 0; --dim) {
    if (mask[dim]) {
      reduced.push_back({input.size(dim), input.stride(dim), 0});
      out -= keepdim;
    } else {
      kept.push_back({input.size(dim), input.stride(dim), output.stride(out--)});
    }
  }
  if (row.result == ReduceRow::value && row.second_result == ReduceRow::value) {
    std::stable_sort(reduced.begin(), reduced.end(),
                     [](const Dim& a, const Dim& b) { return a.input_stride < b.input_stride; });
  }
  pass.kept = coalesce(kept);
  pass.reduced = coalesce(reduced);
  pass.total = count(reduced);
  TORCH_CHECK(pass.total < (int64_t{1} << 32) && count(kept) < (int64_t{1} << 32), "webgpu: ", row.name,
              ": more than 2^32 elements");
  if (pass.total == 0) pass.reduced = {{0, 0, 0}};
  pass.spec.row = &row;
  pass.spec.input = static_cast<uint8_t>(kernel_dtype(input.scalar_type(), row.name));
  pass.spec.output = static_cast<uint8_t>(kernel_dtype(output.scalar_type(), row.name));
  pass.spec.compute = static_cast<uint8_t>(type);
  pass.scalar = static_cast<float>(scalar);
  pass.output = buffer_of(output);
  pass.output_offset = output.storage_offset();
  if (row.second) {
    check_bindable(second, row.name);
    pass.spec.second = static_cast<uint8_t>(kernel_dtype(second.scalar_type(), row.name));
    pass.second = buffer_of(second);
    pass.second_offset = second.storage_offset();
  }
  // Reducing nothing reads nothing: any buffer will do.
  const at::Tensor nothing = buffer_of(input) ? at::Tensor() : empty_tensor({1}, {}, at::kFloat);
  pass.input = buffer_of(nothing.defined() ? nothing : input);
  pass.input_offset = input.storage_offset();
  if (pass.total > 0) pass.choose_quads();
  pass.choose_group();

  pass.splits = pass.split_count();
  if (pass.splits == 1) {
    pass.dispatch();
    return;
  }
  const int64_t outputs = pass.outputs() * (pass.spec.width() == Quads::across ? 4 : 1);
  const at::Tensor parts = empty_tensor({outputs * pass.splits * accumulator_words(row, type)}, {}, at::kInt);
  Pass first = pass;
  first.spec.writes_parts = 1;
  first.output = buffer_of(parts);
  first.dispatch();
  pass.join_parts(buffer_of(parts));
}

}  // namespace torch_webgpu
