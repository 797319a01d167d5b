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

// One pass over accumulators or elements; what is not set here is set by the caller.
struct Pass {
  ReduceSpec spec{};
  const Buffer *input, *output;
  int64_t input_offset, output_offset;
  int64_t splits = 1, total;
  Dims kept, reduced;

  void dispatch() {
    spec.kept_rank = kept.size();
    spec.reduced_rank = reduced.size();
    const ReduceParams at(spec);
    TORCH_CHECK(at.words() <= kParamWords, "webgpu: ", spec.row->name, " has too many dimensions");
    Launch launch;
    launch.bindings[0] = {output};
    launch.bindings[1] = {input};
    launch.binding_count = 2;
    launch.param_words = at.words();
    const int64_t outputs = count(kept), length = count(reduced), tasks = outputs * splits;
    const uint32_t workgroup = spec.grouped ? 1 : reduce_workgroup(spec, target());
    const auto [groups, chunk] = chunks_of(tasks, workgroup);
    launch.grid[0] = groups;
    uint32_t* params = launch.params;
    params[ReduceParams::kOutputs] = outputs;
    params[ReduceParams::kReduced] = length;
    params[ReduceParams::kInputOffset] = input_offset;
    params[ReduceParams::kOutputOffset] = output_offset;
    params[ReduceParams::kSplits] = splits;
    params[ReduceParams::kSpan] = (length + splits - 1) / splits;
    params[ReduceParams::kChunk] = chunk;
    params[ReduceParams::kCount] = total;
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
};

// A workgroup per output where the reduction is long and either runs along memory or has few outputs.
bool wants_group(const Pass& pass) {
  const int64_t length = count(pass.reduced), outputs = count(pass.kept);
  if (length <= 64) return false;
  const bool along_memory = !pass.reduced.empty() && pass.reduced[0].input_stride == 1;
  return along_memory || outputs < 16 * int64_t{target().workgroup};
}

// Parts per output, so that few long reductions still fill the adapter.
int64_t split_count(int64_t outputs, int64_t length) {
  const int64_t wanted = target().software ? 16 : 256, least = target().software ? 4096 : 8192;
  return std::clamp<int64_t>(std::min(wanted / outputs, length / least), 1, 1024);
}

void check_bindable(const at::Tensor& tensor, const char* op) {
  TORCH_CHECK(!buffer_of(tensor) || buffer_of(tensor)->size_bytes <= max_binding_bytes(), "webgpu: ", op,
              ": a tensor of ", tensor.storage().nbytes(),
              " bytes is larger than the adapter's maxStorageBufferBindingSize, ", max_binding_bytes(), " bytes");
}

}  // namespace

void reduce(const ReduceRow& row, const at::Tensor& input, at::OptionalIntArrayRef dims, bool keepdim,
            const at::Tensor& output, at::ScalarType compute) {
  if (output.numel() == 0) return;
  const auto mask =
      at::dim_list_to_bitset(dims.has_value() && !dims->empty() ? dims : at::OptionalIntArrayRef(), input.dim());
  const Compute type = compute_type(kernel_dtype(compute, row.name));
  check_bindable(input, row.name);
  check_bindable(output, row.name);
  // WebGPU binds no buffer both for reading and for writing; out= may name a part of the input's.
  const bool shared = buffer_of(input) == buffer_of(output);
  const at::Tensor result = shared ? empty_tensor(output.sizes(), {}, output.scalar_type()) : output;

  Pass pass;
  Dims kept, reduced;
  for (int64_t dim = input.dim() - 1, out = result.dim() - 1; dim >= 0; --dim) {
    if (mask[dim]) {
      reduced.push_back({input.size(dim), input.stride(dim), 0});
      out -= keepdim;
    } else {
      kept.push_back({input.size(dim), input.stride(dim), result.stride(out--)});
    }
  }
  if (row.result == ReduceRow::value) {
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
  pass.output = buffer_of(result);
  pass.output_offset = result.storage_offset();
  // Reducing nothing reads nothing: any buffer will do.
  const at::Tensor nothing = buffer_of(input) ? at::Tensor() : empty_tensor({1}, {}, at::kFloat);
  pass.input = buffer_of(nothing.defined() ? nothing : input);
  pass.input_offset = input.storage_offset();
  pass.spec.grouped = wants_group(pass);

  const int64_t outputs = count(pass.kept);
  const int64_t splits = pass.spec.grouped ? split_count(outputs, pass.total) : 1;
  if (splits > 1) {
    const int64_t words = outputs * splits * accumulator_words(row, type);
    const at::Tensor parts = empty_tensor({words}, {}, at::kInt);
    Pass first = pass;
    first.splits = splits;
    first.spec.writes_parts = 1;
    first.output = buffer_of(parts);
    first.dispatch();
    int64_t stride = splits;
    for (Dim& dim : pass.kept) {
      dim.input_stride = stride;
      stride *= dim.size;
    }
    pass.reduced = {{splits, 1, 0}};
    pass.spec.reads_parts = 1;
    pass.spec.grouped = 0;
    pass.input = buffer_of(parts);
    pass.input_offset = 0;
    pass.dispatch();
  } else {
    pass.dispatch();
  }
  if (shared) output.copy_(result);
}

}  // namespace torch_webgpu
