// scaled_dot_product_attention as one kernel: the choice of it, the forward, and the launcher of all kernels.
#include "ops/attention/attention.h"

#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "device/generator.h"
#include "device/recorded_call.h"
#include "families/custom.h"
#include "families/epilogue.h"
#include "families/launch.h"
#include "families/windows.h"
#include "ops/native.h"
#include "shader/attention_decode.h"

namespace torch_webgpu {
namespace {

using P = AttentionParams;
using Kind = AttentionKind;
using Operand = AttentionOperand;

constexpr int64_t kLargestHead = 256;

KernelSource print(const Launch& launch) {
  const auto spec = spec_of<AttentionSpec>(launch);
  AttentionTexts texts;
  if (spec.scores) texts.scores = static_cast<const ScoreText*>(launch.context);
  if (spec.epilogue) texts.epilogue = static_cast<const EpilogueText*>(launch.context);
  return {label_attention(spec, texts), print_attention(spec, target(), pages_of(launch), texts)};
}

int64_t ceil_div(int64_t value, int64_t by) { return (value + by - 1) / by; }

bool is_walked(Operand operand) { return static_cast<uint32_t>(operand) < kAttentionWalked; }

// True if the elements of a row are contiguous, and each row begins and ends at a multiple of four elements.
bool is_of_quads(const at::Tensor& tensor) {
  if (tensor.stride(3) != 1 || tensor.size(3) % 4 != 0 || tensor.storage_offset() % 4 != 0) return false;
  for (int64_t dim = 0; dim < 3; ++dim) {
    if (tensor.size(dim) > 1 && tensor.stride(dim) % 4 != 0) return false;
  }
  return true;
}

}  // namespace

bool are_of_quads(at::TensorList tensors) { return std::all_of(tensors.begin(), tensors.end(), is_of_quads); }

namespace {

bool is_written(Kind kind, Operand operand) {
  return operand == Operand::first || operand == Operand::second ||
         (operand == Operand::out && kind != Kind::backward_query);
}

void write_float(uint32_t* words, double value) { write_scalar(words, Compute::f32, value); }

}  // namespace

bool exchanges_by_subgroup() { return target().software && target().subgroup == 8; }

Attention::Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double dropout,
                     bool causal, std::optional<double> scale)
    : batches(query.size(0)),
      heads(query.size(1)),
      kv_heads(key.size(1)),
      queries(query.size(2)),
      keys(key.size(2)),
      head_size(query.size(3)),
      value_size(value.size(3)),
      scale(scale.value_or(1 / std::sqrt(static_cast<double>(head_size)))),
      dropout(std::max(dropout, 0.0)),
      causal(causal),
      part_keys(keys),
      query_block(queries),
      key_block(keys),
      strip_heads(heads / kv_heads) {
  measured.fill(kUnmeasured);
}

bool Attention::wants_halves(at::TensorList tensors, uint32_t operands) const {
  uint64_t bindings = operands;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || fits_binding(tensor)) continue;
    const Part part = part_of(tensor);
    bindings += (part.end - part.begin + kWindowBytes) / max_binding_bytes();
  }
  const bool is_large = bindings > operands;
  return is_large && batches > 1 &&
         bindings > std::min(kMaxBindings, runtime().device.limits.maxStorageBuffersPerShaderStage);
}

Attention Attention::narrow(int64_t begin, int64_t count) const {
  Attention part = *this;
  part.counter += begin * (random_blocks() / batches);
  part.batches = count;
  return part;
}

at::Tensor Attention::of_four_dims(const at::Tensor& mask) {
  at::Tensor result = mask;
  while (result.dim() < 4) result = result.unsqueeze(0);
  return result;
}

void Attention::set_strips() {
  constexpr int64_t kRows = 32;  // of the smallest staged block
  if (!flex && !target().software && queries > kRows) strip_heads = 1;
}

int64_t Attention::rows_of(Kind kind) const {
  return kind == Kind::backward_key ? key_block : strip_heads * query_block;
}

int64_t Attention::strips_of(Kind kind) const {
  return kind == Kind::backward_key ? kv_heads * key_blocks() : heads / strip_heads * query_blocks();
}

// The text's bindings and parameters. It reads them as arrays of its own, so what shares a buffer with an operand is
// copied.
void Attention::bind_flex(Launch& launch, Operands operands) const {
  std::vector<at::Tensor> tensors;
  const auto add = [&](const at::Tensor& tensor) {
    const bool shared = std::any_of(operands.begin(), operands.end(), [&](const auto& operand) {
      return operand.second.defined() && tensor.numel() > 0 && buffer_of(operand.second) == buffer_of(tensor);
    });
    tensors.push_back(shared ? tensor.clone() : tensor);
  };
  if (flex->packed.defined()) {
    add(flex->packed);
  } else {
    for (const at::Tensor& list : flex->lists) add(list);
  }
  const size_t list_bindings = tensors.size();
  for (const at::Tensor& tensor : flex->captured) add(tensor);
  TORCH_CHECK_VALUE(tensors.size() == flex->text.bindings, flex->text.label, ": binds ", flex->text.bindings,
                    " tensors, but ", tensors.size(), " were given");
  TensorBinder binder(flex->text.label, tensors, (1u << tensors.size()) - 1, Places::offsets);
  binder.bind(launch);
  const auto& offsets = binder.offsets();
  uint32_t* words = launch.params;
  words[P::kQueryBlocks] = query_blocks();
  words[P::kQueryBlock] = query_block;
  words[P::kKeyBlocks] = key_blocks();
  words[P::kKeyBlock] = key_block;
  auto packed = static_cast<uint32_t>(flex->first_packed);
  for (size_t i = 0; i < flex->lists.size(); ++i) {
    const at::Tensor& list = flex->lists[i];
    uint32_t* place = &words[P::kLists + 4 * i];
    place[0] = flex->packed.defined() ? offsets[0] + packed : offsets[i];
    for (int64_t dim = 0; dim < 3; ++dim) {
      place[1 + dim] = list.size(dim) > 1 ? static_cast<uint32_t>(list.stride(dim)) : 0;
    }
    packed += static_cast<uint32_t>(list.numel());
  }
  TORCH_CHECK_VALUE(P::kTextWords + flex->captured.size() + flex->words.size() <= kParamWords, flex->text.label,
                    ": too many parameters");
  uint32_t* next =
      std::copy(offsets.begin() + static_cast<int64_t>(list_bindings), offsets.end(), &words[P::kTextWords]);
  next = std::copy(flex->words.begin(), flex->words.end(), next);
  launch.param_words = static_cast<uint32_t>(next - words);
}

void Attention::launch(Kind kind, Operands operands) const {
  AttentionSpec spec{};
  spec.kind = static_cast<uint8_t>(kind);
  for (auto& operand : spec.operands) operand.binding = kAttentionAbsent;
  spec.quads = true;
  for (const auto& [which, tensor] : operands) {
    if (tensor.defined() && is_walked(which) && which != Operand::mask) spec.quads &= is_of_quads(tensor);
  }
  Launch launch;
  launch.param_words = P::kWords;
  if (flex && kind != Kind::combine) {
    bind_flex(launch, operands);
    launch.context = &flex->text;
    spec.scores = flex->text.id;
  }
  std::optional<EpilogueBinder> taken;
  if (epilogue && (kind == Kind::combine || parts == 1)) {
    const EpilogueText& text = *epilogue->epilogue.text;
    taken.emplace(text, at::TensorList{}, epilogue->tensors, epilogue->read_only);
    taken->bind(launch);
    launch.context = &text;
    spec.epilogue = static_cast<uint16_t>(text.id);
  }
  std::pair<at::Tensor, at::Tensor> stand_ins[2];  // a float32 result, and the tensor it is for
  size_t stood_in = 0;
  const int64_t unit = spec.quads ? 4 : 1;
  at::Tensor tensors[kAttentionOperands];
  Part bound[kAttentionOperands];
  for (const auto& [which, given] : operands) {
    if (!given.defined()) continue;
    const auto i = static_cast<uint32_t>(which);
    tensors[i] = given;
    if (taken && which == Operand::out) continue;
    if (!spec.quads && is_written(kind, which) && given.element_size() < 4) {
      stand_ins[stood_in] = {empty_tensor(given.sizes(), {}, at::kFloat), given};
      tensors[i] = stand_ins[stood_in++].first;
    }
    // An array has one type of elements, and the mask's is that of its own dtype.
    const auto is_same_buffer = [&](const auto& other) {
      return other.first != which && other.second.defined() && !other.second.is_meta() &&
             buffer_of(other.second) == buffer_of(given);
    };
    if (which == Operand::mask && std::any_of(operands.begin(), operands.end(), is_same_buffer)) {
      tensors[i] = given.clone();
    }
    bound[i] = part_of(tensors[i]);
    // The result of each part of the keys lies behind the one before it.
    if (parts > 1 && which == (kind == Kind::combine ? Operand::value : Operand::out)) {
      bound[i].end += (parts - 1) * part_stride * tensors[i].element_size();
    }
  }
  bind_pages("scaled_dot_product_attention", launch, bound);
  for (const Part& part : bound) {
    TORCH_CHECK(!part.buffer || part.binding < kAttentionAbsent,
                "webgpu: scaled_dot_product_attention: an epilogue of more tensors than the kernel can number");
  }
  for (uint32_t i = 0; i < kAttentionOperands; ++i) {
    const at::Tensor& tensor = tensors[i];
    if (!tensor.defined()) continue;
    const auto which = static_cast<Operand>(i);
    spec.operands[i].dtype = static_cast<uint8_t>(kernel_dtype(tensor.scalar_type(), "attention")) & 15;
    if (!taken || which != Operand::out) spec.operands[i].binding = bound[i].binding & 15;
    if (which == Operand::delta) launch.params[P::kDeltaPlace] = static_cast<uint32_t>(offset_in(bound[i], tensor));
    if (!is_walked(which)) continue;
    const int64_t by = which == Operand::mask ? 1 : unit;
    uint32_t* place = &launch.params[P::kPlaces + 4 * i];
    place[0] = static_cast<uint32_t>(offset_in(bound[i], tensor) / by);
    for (int64_t dim = 0; dim < 3; ++dim) place[1 + dim] = static_cast<uint32_t>(tensor.stride(dim) / by);
    launch.params[P::kElementStrides + i] = static_cast<uint32_t>(tensor.stride(3));
  }

  const auto [kernel, rows, columns] = block_of(kind);
  spec.kernel = static_cast<uint8_t>(kernel) & 15;
  spec.block = rows;
  spec.columns = columns;
  if (kernel == AttentionKernel::decode) spec.head_columns = quads_of_head();
  if (kernel == AttentionKernel::staged) {
    spec.head_columns = ceil_div(head_size, 32);
    spec.value_columns = ceil_div(value_size, 32);
    spec.ragged = ceil_div(head_size, 4) % 4 != 0 || ceil_div(value_size, 4) % 4 != 0;
  }
  spec.dropout = dropout > 0;
  spec.by_subgroup = exchanges_by_subgroup() && kernel == AttentionKernel::lanes;
  uint32_t* words = launch.params;
  const int64_t blocks = blocks_of(kind);
  int64_t tasks = batches * strips_of(kind) * blocks * (kind == Kind::forward ? parts : 1);
  words[P::kBlocks] = blocks;
  words[P::kKvHeads] = kv_heads;
  words[P::kGroup] = group();
  words[P::kQueries] = queries;
  words[P::kKeys] = keys;
  words[P::kHeadSize] = head_size;
  words[P::kValueSize] = value_size;
  write_float(&words[P::kScale], scale);
  write_float(&words[P::kKeepScale], dropout < 1 ? 1 / (1 - dropout) : 0);
  words[P::kCausal] = causal;
  words[P::kDropBelow] = static_cast<uint32_t>(std::min(std::ldexp(dropout, 32), 4294967295.0));
  for (uint32_t half = 0; half < 2; ++half) {
    words[P::kRandom + half] = static_cast<uint32_t>(seed >> (32 * half));
    words[P::kRandom + 2 + half] = static_cast<uint32_t>(counter >> (32 * half));
  }
  if (dropout > 0 && random_source && kind != Kind::combine) {
    launch.random_word = P::kRandom;
    launch.random_source = *random_source;
  }
  words[P::kParts] = parts;
  words[P::kPartKeys] = part_keys;
  words[P::kPartStride] = part_stride / unit;
  words[P::kBatches] = batches;
  words[P::kStripHeads] = strip_heads;
  write_float(&words[P::kLogUnit], kind == Kind::forward && parts > 1 ? 1 : log_unit);
  launch.grid[0] = std::min<int64_t>(tasks, target().software ? 64 : 65535);
  if (kind == Kind::combine) tasks = batches * heads * queries * ceil_div(value_size, 4);
  if (kind == Kind::backward_mask) {
    const at::Tensor& grad = (operands.end() - 1)->second;
    tasks = grad.numel();
    for (uint32_t dim = 0; dim < 4; ++dim) words[P::kMaskSizes + dim] = grad.size(dim);
  }
  // Many parts of few queries are joined by a workgroup for each.
  constexpr int64_t kManyParts = 8;
  if (kind == Kind::combine && spec.quads && parts >= kManyParts && !target().software && value_size <= kLargestHead) {
    spec.kernel = static_cast<uint8_t>(AttentionKernel::decode) & 15;
    spec.head_columns = ceil_div(value_size, 4);
    tasks = batches * heads * queries;
    launch.grid[0] = std::min<int64_t>(tasks, 65535);
  } else if (kind == Kind::combine || kind == Kind::backward_mask) {
    const auto [groups, chunk] = chunks_of(tasks, target().workgroup);
    words[P::kChunk] = chunk;
    launch.grid[0] = groups;
  }
  words[P::kTasks] = tasks;
  set_key(launch, Family::attention, spec);
  launch.print = &print;
  if (taken) taken->pass(launch, epilogue->words, P::kEpilogueWords);
  dispatch_chosen(launch);
  if (taken) taken->copy_back();
  for (size_t i = 0; i < stood_in; ++i) stand_ins[i].second.copy_(stand_ins[i].first);
}

void Attention::launch_measured(Kind kind, Operands operands) {
  if (choices_are_on() && !epilogue) {
    const bool has_mask = std::any_of(operands.begin(), operands.end(), [](const auto& operand) {
      return operand.first == Operand::mask && operand.second.defined();
    });
    choose_by_time(kind, operands.front().second, has_mask, [&] {
      Contest contest;
      std::vector<std::pair<Operand, at::Tensor>> ordered(operands.begin(), operands.end());
      const auto read = std::stable_partition(ordered.begin(), ordered.end(), [&](const auto& operand) {
        return operand.first == Operand::delta ? kind == Kind::backward_query : is_written(kind, operand.first);
      });
      contest.outputs = read - ordered.begin();
      for (auto& [which, tensor] : ordered) {
        contest.tensors.push_back(layout_of(tensor));
        tensor = at::Tensor();
      }
      contest.run = [kind, ordered, sizes = *this](const std::vector<at::Tensor>& of) {
        auto with_tensors = ordered;
        for (size_t i = 0; i < of.size(); ++i) with_tensors[i].second = of[i];
        Attention(sizes).launch_measured(kind, with_tensors);
      };
      return contest;
    });
  }
  launch(kind, operands);
}

namespace {

using FourSizes = std::array<int64_t, 4>;

// The strides of what lies dense with its dimensions in this order.
FourSizes strides_in(const FourSizes& order, const FourSizes& sizes) {
  FourSizes strides;
  int64_t stride = 1;
  for (int i = 3; i >= 0; --i) {
    strides[order[i]] = stride;
    stride *= sizes[order[i]];
  }
  return strides;
}

// The result has the order of the query's dimensions in memory, as PyTorch's shape function of this op says.
at::Tensor like_query(const at::Tensor& query, int64_t value_size) {
  if (query.size(3) == value_size) return at::empty_like(query);
  const FourSizes sizes{query.size(0), query.size(1), query.size(2), value_size};
  FourSizes order{0, 1, 2, 3};
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return query.stride(a) != query.stride(b) ? query.stride(a) > query.stride(b) : a < b;
  });
  return empty_tensor(sizes, strides_in(order, sizes), query.scalar_type());
}

// Few queries with many keys leave an adapter idle, so the keys are split and a second kernel joins the parts.
void split(Attention& sizes, uint32_t element_bytes) {
  if (sizes.block_of(Kind::forward).kernel == AttentionKernel::decode) {
    sizes.part_keys = decode_for(sizes.quads_of_head(), element_bytes, false).keys();
    sizes.parts = ceil_div(sizes.keys, sizes.part_keys);
    return;
  }
  const int64_t tasks = sizes.batches * sizes.strips_of(Kind::forward) * sizes.blocks_of(Kind::forward);
  // A GPU takes several workgroups to each of its units, but joining parts takes time too.
  constexpr int64_t kIdleGpu = 192;
  const int64_t wanted = target().software ? 4 : tasks < kIdleGpu ? 512 : 0, least_keys = target().software ? 512 : 128;
  const int64_t parts = std::min(wanted / tasks, sizes.keys / least_keys);
  if (parts < 2) return;
  sizes.part_keys = ceil_div(ceil_div(sizes.keys, parts), 32) * 32;
  sizes.parts = ceil_div(sizes.keys, sizes.part_keys);
}

}  // namespace

void attention_forward(Attention sizes, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const at::Tensor& mask, const at::Tensor& out, const at::Tensor& log_sum,
                       const at::Tensor& most) {
  if (!most.defined() && !sizes.epilogue && sizes.wants_halves({query, key, value, mask, out}, 6)) {
    const int64_t half = (sizes.batches + 1) / 2;
    for (const auto& [begin, count] : {std::pair{int64_t{0}, half}, {half, sizes.batches - half}}) {
      const auto some = [&, begin = begin, count = count](const at::Tensor& tensor) {
        return tensor.defined() ? tensor.narrow(0, begin, count) : tensor;
      };
      const at::Tensor sums = empty_tensor({count, sizes.heads, sizes.queries}, {}, at::kFloat);
      attention_forward(sizes.narrow(begin, count), some(query), some(key), some(value), some(mask), some(out), sums,
                        most);
      some(log_sum).copy_(sums);
    }
    return;
  }
  sizes.set_strips();
  sizes.wants_most = most.defined();
  sizes.in_quads = are_of_quads({query, key, value, out});
  if (choices_are_on() && !most.defined()) {
    sizes.choose_by_time(Kind::forward, query, mask.defined(), [&] {
      Contest contest;
      for (const at::Tensor& tensor : {out, log_sum, query, key, value, mask}) {
        contest.tensors.push_back(layout_of(tensor));
      }
      contest.outputs = 2;
      Attention plain = sizes;  // an epilogue is the caller's, and costs all kernels the same
      plain.epilogue = nullptr;
      contest.run = [plain](const std::vector<at::Tensor>& of) {
        attention_forward(plain, of[2], of[3], of[4], of[5], of[0], of[1]);
      };
      return contest;
    });
  }
  if (!sizes.wants_most) split(sizes, key.element_size());
  if (sizes.parts == 1) {
    sizes.launch(Kind::forward, {{Operand::query, query},
                                 {Operand::key, key},
                                 {Operand::value, value},
                                 {Operand::out, out},
                                 {Operand::mask, mask},
                                 {Operand::log_sum, log_sum},
                                 {Operand::most, most}});
    return;
  }
  const int64_t b = sizes.batches, h = sizes.heads, q = sizes.queries, v = sizes.value_size;
  const at::Tensor parts = empty_tensor({sizes.parts, b, h, q, v}, {}, at::kFloat),
                   part_log_sum = empty_tensor({b, h, q, sizes.parts}, {}, at::kFloat);
  sizes.part_stride = b * h * q * v;
  sizes.launch(Kind::forward, {{Operand::query, query},
                               {Operand::key, key},
                               {Operand::value, value},
                               {Operand::out, parts[0]},
                               {Operand::mask, mask},
                               {Operand::log_sum, part_log_sum}});
  sizes.launch(Kind::combine, {{Operand::value, parts[0]},
                               {Operand::out, out},
                               {Operand::log_sum, log_sum},
                               {Operand::part_log_sum, part_log_sum}});
}

void attention_into(const EpilogueCall& call, const AttentionInto& given) {
  const auto& [query, key, value, mask, log_sum, order, causal, scale] = given;
  const std::string& label = call.epilogue.text->label;
  TORCH_CHECK_VALUE(query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && key.numel() > 0, label,
                    ": query, key and value have four dimensions, and a key");
  TORCH_CHECK_VALUE(call.epilogue.text->id <= std::numeric_limits<uint16_t>::max(), label,
                    ": a process has at most 65535 epilogues of attention");
  if (query.numel() == 0) return;
  Attention sizes(query, key, value, 0, causal, scale);
  sizes.epilogue = &call;
  const FourSizes shape{sizes.batches, sizes.heads, sizes.queries, sizes.value_size};
  const auto options = at::TensorOptions(at::kMeta).dtype(at::kFloat);
  const at::Tensor out = at::empty_strided(shape, strides_in(order, shape), options);
  // The text reads and writes what it binds as arrays of its own, so an operand that shares a buffer is copied.
  const auto apart = [&](const at::Tensor& operand) {
    const bool shared = operand.defined() && std::any_of(call.tensors.begin(), call.tensors.end(), [&](const auto& t) {
                          return t.numel() > 0 && buffer_of(t) == buffer_of(operand);
                        });
    return shared ? operand.clone() : operand;
  };
  const at::Tensor sums =
      log_sum.defined() ? flat_of(log_sum) : empty_tensor(at::IntArrayRef(shape).slice(0, 3), {}, at::kFloat);
  const at::Tensor scores = mask.defined() ? mask.expand({shape[0], shape[1], shape[2], sizes.keys}) : mask;
  attention_forward(sizes, apart(query), apart(key), apart(value), apart(scores), out, sums);
  if (log_sum.defined() && !sums.is_same(log_sum)) log_sum.copy_(sums);
}

namespace {

using Result = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                          at::Tensor, at::Tensor>;

Result attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                 const std::optional<at::Tensor>& attn_bias, double dropout_p, bool is_causal, bool return_debug_mask,
                 std::optional<double> scale) {
  TORCH_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4,
              "scaled_dot_product_attention on webgpu: query, key and value have four dimensions");
  TORCH_CHECK(!return_debug_mask, "scaled_dot_product_attention on webgpu: there is no mask to return");
  TORCH_CHECK(dropout_p <= 1, "dropout probability has to be between 0 and 1, but got ", dropout_p);
  Attention sizes(query, key, value, dropout_p, is_causal, scale);
  TORCH_CHECK(std::max(sizes.head_size, sizes.value_size) <= kLargestHead,
              "scaled_dot_product_attention on webgpu: a head has at most ", kLargestHead, " elements");
  const at::Tensor out = like_query(query, sizes.value_size);
  const at::Tensor log_sum = empty_tensor({sizes.batches, sizes.heads, sizes.queries}, {}, at::kFloat);
  // These tensors stay on the host, so that the backward reads them without waiting for the device.
  const at::Tensor seed = at::scalar_tensor(0, at::kLong), counter = at::scalar_tensor(0, at::kLong);
  if (dropout_p > 0) {
    auto* generator = at::get_generator_or_default<Generator>(std::nullopt, default_generator());
    const auto blocks = generator->take(sizes.random_blocks());
    sizes.seed = blocks.seed;
    sizes.counter = blocks.first;
    sizes.random_source = 0;
    *seed.mutable_data_ptr<int64_t>() = static_cast<int64_t>(sizes.seed);
    *counter.mutable_data_ptr<int64_t>() = static_cast<int64_t>(sizes.counter);
    made_random_start(seed, counter);
  }
  if (key.numel() == 0 || value.numel() == 0 || query.numel() == 0) {
    out.zero_();
    log_sum.fill_(-INFINITY);
  } else {
    at::Tensor mask;
    if (attn_bias && attn_bias->defined()) {
      mask = attn_bias->expand({sizes.batches, sizes.heads, sizes.queries, sizes.keys});
    }
    attention_forward(sizes, query, key, value, mask, out, log_sum);
  }
  return {out, log_sum, at::Tensor(), at::Tensor(), sizes.queries, sizes.keys, seed, counter, at::Tensor()};
}

// Sizes may be symbolic here: a compiler asks too.
bool fits(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
          const std::optional<at::Tensor>& mask, bool enable_gqa) {
  for (const at::Tensor* tensor : {&query, &key, &value}) {
    if (tensor->is_nested() || tensor->dim() != 4 || tensor->sym_numel() == 0) return false;
    if (tensor->sym_size(3) > kLargestHead || tensor->scalar_type() != query.scalar_type()) return false;
    if (tensor->sym_size(0) != query.sym_size(0)) return false;
  }
  const auto dtype = query.scalar_type();
  if (dtype != at::kFloat && dtype != at::kHalf && dtype != at::kBFloat16) return false;
  if (key.sym_size(3) != query.sym_size(3) || key.sym_size(2) != value.sym_size(2)) return false;
  const auto heads = query.sym_size(1), kv_heads = key.sym_size(1);
  if (kv_heads != value.sym_size(1) || heads % kv_heads != 0) return false;
  if (!enable_gqa && heads != kv_heads && kv_heads != 1) return false;
  if (!mask || !mask->defined()) return true;
  const c10::SymInt scores[] = {query.sym_size(0), heads, query.sym_size(2), key.sym_size(2)};
  return at::is_expandable_to(mask->sym_sizes(), scores);
}

// Whether a transform of torch.func is at work: vmap has a rule for the composite and none for a device's kernel, and
// may be below a derivative, which does not show it. The composite has derivatives of any order, too.
bool is_transformed(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kKeys({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper});
  return tensor.key_set().has_any(kKeys);
}

int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double, bool, std::optional<double>, bool enable_gqa) {
  const auto& context = at::globalContext();
  // There is one fused kernel: enabling the flash or the overrideable backend selects it.
  const bool may_fuse = (context.userEnabledOverrideableSDP() || context.userEnabledFlashSDP()) &&
                        !is_transformed(query) && !is_transformed(key) && !is_transformed(value);
  if (may_fuse && fits(query, key, value, mask, enable_gqa)) return static_cast<int64_t>(at::SDPBackend::overrideable);
  TORCH_CHECK(context.userEnabledMathSDP(), "No viable backend for scaled_dot_product_attention was found. ",
              "This is likely due to turning off both the math kernel and the fused kernels.");
  return static_cast<int64_t>(at::SDPBackend::math);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  native<&choose>(library, "_fused_sdp_choice");
  native<&attention>(library, "_scaled_dot_product_fused_attention_overrideable");
}

}  // namespace
}  // namespace torch_webgpu

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &torch_webgpu::choose)
}  // namespace at::native
