#include "families/pointwise.h"

#include <ATen/ops/item.h>
#include <c10/util/SmallVector.h>

#include <algorithm>

#include "families/windows.h"

namespace torch_webgpu {
namespace {

KernelSource print(const Launch& launch) {
  const auto spec = spec_of<PointwiseSpec>(launch);
  return {label_pointwise(spec), print_pointwise(spec, target())};
}

// The value of a 0-d CPU tensor in the common dtype; products take it in the wider compute type, as on the CPU.
c10::Scalar cpu_value(const at::TensorIteratorBase& iterator, int operand, at::ScalarType common, bool exact) {
  const void* data = iterator.data_ptr(operand);
  c10::Scalar value;
  switch (iterator.dtype(operand)) {
    case at::kDouble: value = *static_cast<const double*>(data); break;
    case at::kFloat: value = *static_cast<const float*>(data); break;
    case at::kLong: value = *static_cast<const int64_t*>(data); break;
    case at::kBool: value = *static_cast<const bool*>(data); break;
    default: value = iterator.tensor(operand).item(); break;
  }
  switch (common) {
    case at::kHalf: return exact ? c10::Scalar(static_cast<float>(static_cast<c10::Half>(value.toDouble()))) : value;
    case at::kBFloat16:
      return exact ? c10::Scalar(static_cast<float>(static_cast<c10::BFloat16>(value.toDouble()))) : value;
    case at::kByte: return static_cast<int64_t>(static_cast<uint8_t>(value.toLong()));
    case at::kChar: return static_cast<int64_t>(static_cast<int8_t>(value.toLong()));
    case at::kShort: return static_cast<int64_t>(static_cast<int16_t>(value.toLong()));
    case at::kUInt16: return static_cast<int64_t>(static_cast<uint16_t>(value.toLong()));
    case at::kUInt32: return static_cast<int64_t>(static_cast<uint32_t>(value.toLong()));
    default: return value;
  }
}

// The CPU's kernels refuse dtypes they were not made for, even of empty tensors.
void check_dtype(const PointwiseRow& row, at::ScalarType dtype) {
  const bool floating = at::isFloatingType(dtype), boolean = dtype == at::kBool;
  const bool refused = ((row.flags & kFloats) && !floating) || ((row.flags & kNoBool) && boolean) ||
                       ((row.flags & kIntegers) && floating);
  TORCH_CHECK_NOT_IMPLEMENTED(!refused, "\"", row.name, "\" not implemented for '", toString(dtype), "'");
}

class Elementwise {
 public:
  Elementwise(const PointwiseRow& row, at::ScalarType compute, Scalars scalars, c10::ArrayRef<uint32_t> words,
              bool bits)
      : row_(row),
        common_(compute),
        common_dtype_(bits || (row.flags & PointwiseRow::stored) ? stored_dtype(compute, row.name)
                                                                 : kernel_dtype(compute, row.name)),
        compute_(compute_type(common_dtype_)),
        scalars_(scalars),
        words_(words),
        bits_(bits) {}

  void run(at::TensorIteratorBase& iterator) {
    if (iterator.numel() == 0) return;
    Launch launch;
    if (record(iterator, launch)) return runtime().stream.dispatch(launch);
    // Some operand reaches further than one binding may: halve the work until it does not.
    TORCH_INTERNAL_ASSERT(iterator.numel() > 1 && !(row_.flags & (PointwiseRow::has_index | PointwiseRow::random)));
    auto first = iterator.split(iterator.get_dim_to_split());
    run(*first);
    run(iterator);
  }

 private:
  struct Place {
    int64_t offset;  // in elements, from the start of the binding
    int64_t bytes;   // per element; 0 for a scalar
  };

  bool record(at::TensorIteratorBase& iterator, Launch& launch) {
    const int operands = iterator.ntensors(), rank = iterator.ndim();
    TORCH_INTERNAL_ASSERT(operands <= static_cast<int>(kMaxOperands));
    PointwiseSpec spec{};
    spec.row = &row_;
    spec.operand_count = operands;
    spec.compute = static_cast<uint8_t>(compute_);
    Place places[kMaxOperands];
    launch.binding_count = 0;
    bool fits = true;
    for (int i = 0; i < operands; ++i) {
      if (i > 0 && iterator.is_cpu_scalar(i)) {
        spec.operands[i].access = static_cast<uint8_t>(Access::scalar);
        places[i] = {0, 0};
        continue;
      }
      const Buffer* buffer = buffer_of(iterator.tensor_base(i));
      const int64_t bytes = iterator.element_size(i);
      const DType dtype = bits_ ? raw_dtype(bytes) : stored_dtype(iterator.dtype(i), row_.name);
      spec.operands[i].dtype = static_cast<uint8_t>(dtype);
      spec.operands[i].access = static_cast<uint8_t>(Access::strided);
      places[i] = {(static_cast<const char*>(iterator.data_ptr(i)) - buffer->address) / bytes, bytes};
      fits &= buffer->size_bytes <= max_binding_bytes();
      spec.bindings |= bind(launch, buffer) << (4 * i);
    }
    const bool computed = (row_.flags & PointwiseRow::returns_bool) == 0;  // the result is of the common dtype
    for (int i = computed ? 0 : 1; i < operands; ++i) {
      const bool differs = places[i].bytes != 0 && spec.dtype(i) != common_dtype_;
      if (differs && size_bytes(common_dtype_) < 4 && common_dtype_ != DType::boolean && !bits_) {
        spec.common = 1 + static_cast<uint8_t>(common_dtype_);
      }
    }
    if (!fits) [[unlikely]] {
      if (!bind_windows(iterator, launch, spec, places)) return false;
    }
    spec.binding_count = launch.binding_count;
    launch.bytes = bytes_moved(iterator, places);

    const uint64_t elements = iterator.numel();
    const bool quads = choose_quads(iterator, spec, places);
    uint64_t steps = elements;
    if (quads) {
      spec.store = static_cast<uint8_t>(Store::quads);
      spec.partial = elements % 4 != 0;
      steps = (elements + 3) / 4;
    } else if (places[0].bytes >= 4) {
      spec.store = static_cast<uint8_t>(Store::elements);
    } else if (is_contiguous(iterator, 0)) {
      const int64_t per_word = 4 / places[0].bytes;
      spec.store = static_cast<uint8_t>(Store::words);
      steps = (elements + places[0].offset % per_word + per_word - 1) / per_word;
    } else {
      spec.store = static_cast<uint8_t>(Store::atomics);
    }
    spec.rank = one_index(iterator, places) ? 0 : rank;

    const PointwiseParams at(spec);
    TORCH_CHECK(at.words() <= kParamWords, "webgpu: ", row_.name, " has too many dimensions: ", rank);
    launch.param_words = at.words();
    const auto [groups, chunk] = chunks_of(steps, target().workgroup);
    launch.grid[0] = groups;
    uint32_t* params = launch.params;
    params[PointwiseParams::kSteps] = static_cast<uint32_t>(steps);
    params[PointwiseParams::kChunk] = chunk;
    params[PointwiseParams::kElements] = static_cast<uint32_t>(elements);
    for (uint32_t s = 0; s < row_.scalars; ++s) write_scalar(&params[at.scalar(s)], compute_, **(scalars_.begin() + s));
    TORCH_INTERNAL_ASSERT(words_.size() == row_.words);
    std::copy(words_.begin(), words_.end(), &params[at.word(0)]);
    if (row_.flags & PointwiseRow::random) launch.random_word = at.word(0);
    for (int i = 0; i < operands; ++i) {
      if (places[i].bytes == 0) {
        write_scalar(&params[at.value(i)], compute_,
                     cpu_value(iterator, i, common_, i != 2 || !(row_.flags & PointwiseRow::wide_scalars)));
        if (spec.rank) std::fill_n(&params[at.stride(i, 0)], rank, 0);
        continue;
      }
      const int64_t unit = spec.access(i) == Access::run ? 4 : 1;
      params[at.offset(i)] = static_cast<uint32_t>(places[i].offset / unit);
      for (int dim = 0; dim < static_cast<int>(spec.rank); ++dim) {
        const int64_t stride = iterator.strides(i)[dim] / places[i].bytes;
        // Along the quads' own dimension a run moves by one quad, and a splat stands still.
        params[at.stride(i, dim)] = static_cast<uint32_t>(quads && dim == 0 ? stride : stride / unit);
      }
    }
    for (int dim = 0; dim < static_cast<int>(spec.rank); ++dim) {
      const int64_t size = iterator.shape()[dim];
      params[at.size(dim)] = static_cast<uint32_t>(quads && dim == 0 ? size / 4 : size);
    }
    set_key(launch, Family::pointwise, spec);
    launch.print = &print;
    return true;
  }

  // Each element that an operand has, once: not again where it is broadcast.
  static uint64_t bytes_moved(const at::TensorIteratorBase& iterator, const Place* places) {
    uint64_t total = 0;
    for (int i = 0; i < iterator.ntensors(); ++i) {
      if (places[i].bytes == 0) continue;
      uint64_t bytes = places[i].bytes;
      for (int dim = 0; dim < iterator.ndim(); ++dim) {
        if (iterator.strides(i)[dim] != 0) bytes *= iterator.shape()[dim];
      }
      total += bytes;
    }
    return total;
  }

  static bool is_contiguous(const at::TensorIteratorBase& iterator, int operand) {
    int64_t expected = iterator.element_size(operand);
    for (int dim = 0; dim < iterator.ndim(); ++dim) {
      if (iterator.shape()[dim] != 1 && iterator.strides(operand)[dim] != expected) return false;
      expected *= iterator.shape()[dim];
    }
    return true;
  }

  // One index serves all operands when the iterator has coalesced to a line that each walks by one or not at all.
  bool one_index(const at::TensorIteratorBase& iterator, const Place* places) const {
    if (iterator.ndim() > 1) return false;
    for (int i = 0; i < iterator.ntensors() && iterator.ndim() == 1; ++i) {
      const int64_t stride = iterator.strides(i)[0];
      if (places[i].bytes != 0 && stride != places[i].bytes && iterator.numel() > 1) return false;
    }
    return true;
  }

  // Quads need every operand to walk the innermost dimension by one, from a multiple of four, or not at all.
  static bool choose_quads(const at::TensorIteratorBase& iterator, PointwiseSpec& spec, const Place* places) {
    const int rank = iterator.ndim();
    if (iterator.numel() < 4) return false;
    if (rank > 1 && iterator.shape()[0] % 4 != 0) return false;
    Access access[kMaxOperands];
    uint32_t elements[kMaxOperands] = {};  // element size of each binding's array
    for (int i = 0; i < iterator.ntensors(); ++i) {
      const auto [offset, bytes] = places[i];
      if (bytes == 16) return false;  // each element is a quad of words by itself
      if (bytes == 0) {
        access[i] = Access::scalar;
        continue;
      }
      const int64_t inner = rank == 0 ? bytes : iterator.strides(i)[0];
      if (inner == 0 && i > 0) {
        access[i] = Access::splat;
        continue;
      }
      if (inner != bytes || offset % 4 != 0) return false;
      for (int dim = 1; dim < rank; ++dim) {
        if (iterator.strides(i)[dim] % (4 * bytes) != 0) return false;
      }
      access[i] = Access::run;
      uint32_t& width = elements[spec.binding(i)];
      const uint32_t wanted = bytes == 8 ? 4 : static_cast<uint32_t>(bytes);
      if (width != 0 && width != wanted) return false;
      width = wanted;
    }
    for (int i = 0; i < iterator.ntensors(); ++i) spec.operands[i].access = static_cast<uint8_t>(access[i]);
    return true;
  }

  // Binds only the part of each buffer that is used. False when a part is still too large, or when two parts of one
  // buffer overlap and do not fit into one binding.
  static bool bind_windows(const at::TensorIteratorBase& iterator, Launch& launch, PointwiseSpec& spec, Place* places) {
    Part parts[kMaxOperands];
    for (int i = 0; i < iterator.ntensors(); ++i) {
      if (places[i].bytes == 0) continue;
      const uint64_t begin = places[i].offset * places[i].bytes;
      uint64_t end = begin + places[i].bytes;
      for (int dim = 0; dim < iterator.ndim(); ++dim) end += (iterator.shape()[dim] - 1) * iterator.strides(i)[dim];
      parts[i] = {buffer_of(iterator.tensor_base(i)), begin, end, 0};
    }
    launch.binding_count = 0;
    if (!bind_parts(launch, {parts, static_cast<size_t>(iterator.ntensors())})) return false;
    spec.bindings = 0;
    for (int i = 0; i < iterator.ntensors(); ++i) {
      if (places[i].bytes == 0) continue;
      spec.bindings |= parts[i].binding << (4 * i);
      places[i].offset -= static_cast<int64_t>(parts[i].begin) / places[i].bytes;
    }
    return true;
  }

  const PointwiseRow& row_;
  const at::ScalarType common_;
  const DType common_dtype_;
  const Compute compute_;
  const Scalars scalars_;
  const c10::ArrayRef<uint32_t> words_;
  const bool bits_;
};

}  // namespace

void elementwise(at::TensorIteratorBase& iterator, const PointwiseRow& row, at::ScalarType compute, Scalars scalars,
                 c10::ArrayRef<uint32_t> words) {
  check_dtype(row, compute);
  Elementwise(row, compute, scalars, words, false).run(iterator);
}

void elementwise_bits(at::TensorIteratorBase& iterator, const PointwiseRow& row, Scalars scalars) {
  const int64_t bytes = iterator.element_size(0);
  const at::ScalarType compute = bytes == 16 ? at::kComplexDouble : bytes == 8 ? at::kLong : at::kInt;
  Elementwise(row, compute, scalars, {}, true).run(iterator);
}

}  // namespace torch_webgpu
