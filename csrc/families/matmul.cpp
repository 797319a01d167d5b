// From operands with their strides to the kernel that suits their shape and the adapter.
#include "families/matmul.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>

#include "families/choices.h"
#include "families/epilogue.h"
#include "families/launch.h"
#include "families/windows.h"
#include "shader/matmul_tile.h"

namespace torch_webgpu {
namespace {

constexpr Epilogue kProduct{"", "product"};
constexpr Epilogue kScaled{", scaled", "mul(s0, product)"};
constexpr Epilogue kAdded{", added", "add(mul(s0, product), mul(s1, c))", true};

KernelSource print(const Launch& launch) {
  const auto spec = spec_of<MatmulSpec>(launch);
  return {label_matmul(spec), print_matmul(spec, target())};
}

struct Operand {
  const at::Tensor* tensor;
  int64_t batch, first, second;  // strides: by row and column (out, c), or by line and step (a, b)
};

struct Problem {
  int64_t rows, columns, depth, batches;
  Operand out, a, b, c;
  bool transposed = false;

  int64_t work() const { return rows * columns * depth * batches; }
  uint64_t flops() const { return 2 * static_cast<uint64_t>(work()); }

  // The product of the transposed matrices, which is the transposed product.
  void transpose() {
    transposed = !transposed;
    std::swap(rows, columns);
    std::swap(a, b);
    std::swap(out.first, out.second);
    std::swap(c.first, c.second);
  }
};

Operand operand_of(const at::Tensor& tensor, bool by_column) {
  if (!tensor.defined()) return {&tensor, 0, 0, 0};
  const int64_t dims = tensor.dim(), row = tensor.stride(dims - 2), column = tensor.stride(dims - 1);
  return {&tensor, dims > 2 ? tensor.stride(0) : 0, by_column ? column : row, by_column ? row : column};
}

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

// The features of the adapter that a kernel needs.
enum class Where : uint8_t { anywhere, gpu, subgroup };

enum class Types : uint8_t { any, floats, halves };  // what a kernel multiplies; floats are summed in f32

// The kernels in the order of preference: the first that takes the product gets it.
struct Candidate {
  const char* name;
  MatmulKernel kernel;
  uint8_t lines;  // see MatmulSpec
  Where where;
  Types types;
  int64_t rows = kAny, columns = kAny;  // at most
  int64_t work = 0;                     // at least: a large kernel takes a second to compile on a software adapter
  int64_t area = 0;                     // rows * columns, at least: or most of a tile would be for nothing
  bool along_memory = false;            // steps of a are neighbours
  int64_t groups = 0;                   // at least: a GPU has about a hundred units to occupy
};
constexpr int64_t kLarge = 1 << 19, kArea = 64;
constexpr Candidate kCandidates[] = {
    {"vector by 1", MatmulKernel::vector, 1, Where::anywhere, Types::floats, 1, 1, 4096, 0, true},
    {"vector by 4", MatmulKernel::vector, 4, Where::anywhere, Types::floats, kAny, 1, 4096, 0, true},
    {"thin 1", MatmulKernel::thin, 1, Where::gpu, Types::floats, 1},
    {"thin 4", MatmulKernel::thin, 4, Where::gpu, Types::floats, 4},
    {"thin 16", MatmulKernel::thin, 16, Where::gpu, Types::floats, 16},
    {"128x128", MatmulKernel::tiled, 3, Where::gpu, Types::halves, kAny, kAny, 0, 0, false, 4 * kGpuUnits},
    {"128x128 twice", MatmulKernel::tiled, 4, Where::gpu, Types::floats, kAny, kAny, 0, 0, false, 4 * kGpuUnits},
    {"64x64", MatmulKernel::tiled, 1, Where::gpu, Types::floats, kAny, kAny, 0, 0, false, 2 * kGpuUnits},
    {"32x32", MatmulKernel::tiled, 0, Where::gpu, Types::floats},
    {"64x64 by 64", MatmulKernel::tiled, 2, Where::gpu, Types::floats},
    {"shared", MatmulKernel::shared, 1, Where::gpu, Types::any},
    {"subgroup 1", MatmulKernel::subgroup, 1, Where::subgroup, Types::floats, 8, kAny, kLarge / 4, kArea},
    {"subgroup 2", MatmulKernel::subgroup, 2, Where::subgroup, Types::floats, 16, kAny, kLarge / 2, kArea},
    {"subgroup 4", MatmulKernel::subgroup, 4, Where::subgroup, Types::floats, kAny, kAny, kLarge, kArea},
    {"tile", MatmulKernel::tile, 1, Where::anywhere, Types::any},
};
constexpr Candidate kJoin{"join", MatmulKernel::join, 1, Where::gpu, Types::floats};

std::atomic<const Candidate*> forced{nullptr};  // for tests

bool is_here(Where where) {
  static const std::array<bool, 3> here = {true, !target().software,
                                           target().software && target().subgroup == kMatmulSubgroup};
  return here[static_cast<size_t>(where)];
}

bool in_quads(const Operand& operand, int64_t batches) {
  const auto bytes = operand.tensor->element_size();
  return bytes >= 2 && bytes <= 4 && operand.tensor->storage_offset() % 4 == 0 &&
         (batches == 1 || operand.batch % 4 == 0);
}

Walk walk_of(const Operand& operand, int64_t lines, int64_t batches, bool four_lines) {
  if (!in_quads(operand, batches)) return Walk::elements;
  if (operand.second == 1 && (lines == 1 || operand.first % 4 == 0)) return Walk::along;
  if (four_lines && operand.first == 1 && operand.second % 4 == 0 && lines % 4 == 0) return Walk::across;
  return Walk::elements;
}

int64_t up(int64_t value, int64_t by) { return (value + by - 1) / by; }

// The workgroups of the kernels for GPUs.
std::array<int64_t, 3> groups_of(const Candidate& candidate, const Problem& problem) {
  switch (candidate.kernel) {
    case MatmulKernel::tiled: {
      const MatmulTile& tile = kMatmulTiles[candidate.lines];
      return {up(problem.columns, tile.columns), up(problem.rows, tile.rows), problem.batches};
    }
    case MatmulKernel::join: return {up(problem.rows * up(problem.columns, 4), kJoinQuads), 1, 1};
    default: {  // thin
      const bool across = walk_of(problem.b, problem.columns, problem.batches, true) == Walk::across;
      return {up(problem.columns, across ? 4 * thin_team(candidate.lines) : 64 / kThinTeam * kThinLines), 1,
              problem.batches};
    }
  }
}

bool is_for_gpus_alone(MatmulKernel kernel) {
  return kernel == MatmulKernel::tiled || kernel == MatmulKernel::thin || kernel == MatmulKernel::join;
}

// Turns the product as suits the kernel: thin ones have few rows, and tiles store neighbours of a row.
void turn_for(const Candidate& candidate, Problem& problem) {
  const bool has_result = problem.out.tensor != nullptr;  // or else a text takes it, row by row
  switch (candidate.kernel) {
    case MatmulKernel::subgroup:
      if (problem.columns < 32 && problem.columns < problem.rows) problem.transpose();
      return;
    case MatmulKernel::thin:
      if (problem.columns < problem.rows) problem.transpose();
      return;
    case MatmulKernel::tiled:
      if (has_result ? problem.out.first == 1 && problem.out.second != 1 : problem.transposed) problem.transpose();
      return;
    default: return;
  }
}

bool can_run(const Candidate& candidate, const Problem& problem, Compute compute) {
  const auto is_half = [](const Operand& operand) { return operand.tensor->scalar_type() == at::kHalf; };
  if (!is_here(candidate.where) || (candidate.types != Types::any && compute != Compute::f32)) return false;
  if (candidate.types == Types::halves && !(is_half(problem.a) && is_half(problem.b))) return false;
  if (problem.rows > candidate.rows || problem.columns > candidate.columns) return false;
  if (candidate.along_memory && problem.a.second != 1) return false;
  if (!is_for_gpus_alone(candidate.kernel)) return true;
  if (candidate.kernel == MatmulKernel::thin && problem.b.second != 1 &&
      walk_of(problem.b, problem.columns, problem.batches, true) != Walk::across) {
    return false;
  }
  constexpr int64_t kMostGroups = 65535;
  const auto groups = groups_of(candidate, problem);
  return std::all_of(groups.begin(), groups.end(), [](int64_t count) { return count <= kMostGroups; });
}

bool is_worth(const Candidate& candidate, const Problem& problem) {
  if (problem.work() < candidate.work) return false;
  if (candidate.groups == 0) return true;
  const auto [x, y, z] = groups_of(candidate, problem);
  return x * y * z >= candidate.groups;
}

// The first of the table that suits.
const Candidate& first_of_table(Problem& problem, Compute compute) {
  for (const Candidate& candidate : kCandidates) {
    if (candidate.where == Where::gpu && !is_here(Where::gpu)) continue;
    turn_for(candidate, problem);
    if (can_run(candidate, problem, compute) && is_worth(candidate, problem)) return candidate;
  }
  return kCandidates[std::size(kCandidates) - 1];
}

uint64_t key_of(const Problem& problem, Compute compute) {
  const auto walk = [&](const Operand& operand, int64_t lines) {
    return static_cast<uint64_t>(walk_of(operand, lines, problem.batches, true));
  };
  // What a text takes is like a dense float32 result.
  const bool has_result = problem.out.tensor != nullptr;
  const at::ScalarType result = has_result ? problem.out.tensor->scalar_type() : at::kFloat;
  ChoiceKey key(Family::matmul);
  key.add_dtype(*problem.a.tensor).add_dtype(*problem.b.tensor).add(static_cast<uint64_t>(result), 6);
  key.add(walk(problem.a, problem.rows), 2).add(walk(problem.b, problem.columns), 2);
  key.add(has_result ? problem.out.second == 1 : !problem.transposed, 1).add(compute == Compute::f32, 1);
  key.add(problem.c.tensor && problem.c.tensor->defined(), 1);
  key.add_size(problem.rows).add_size(problem.columns).add_size(problem.depth).add_size(problem.batches);
  return key.value();
}

// The kernels of the table that can compute the product and are closest to `first`, which leads.
std::vector<Contest::Kernel> neighbours_of(const Candidate& first, const Problem& problem, Compute compute) {
  constexpr size_t kMost = 4;
  std::vector<const Candidate*> found;
  for (const Candidate& candidate : kCandidates) {
    Problem turned = problem;
    turn_for(candidate, turned);
    if (can_run(candidate, turned, compute)) found.push_back(&candidate);
  }
  std::stable_sort(found.begin(), found.end(), [&](const Candidate* one, const Candidate* other) {
    return std::abs(one - &first) < std::abs(other - &first);
  });
  found.resize(std::min(found.size(), kMost));
  std::vector<Contest::Kernel> kernels;
  kernels.reserve(found.size());
  for (const Candidate* candidate : found) kernels.push_back({candidate - kCandidates, candidate->name});
  return kernels;
}

// Kernels are timed with an epilogue of their own: what a text does with the elements costs all of them the same.
Contest contest_of(const Candidate& first, Problem problem, Compute compute) {
  std::vector<Contest::Kernel> kernels = neighbours_of(first, problem, compute);
  if (problem.transposed) problem.transpose();
  const bool has_result = problem.out.tensor != nullptr, has_c = problem.c.tensor != nullptr;
  const at::Tensor &a = *problem.a.tensor, &b = *problem.b.tensor;
  const int64_t sizes[] = {problem.batches, problem.rows, problem.columns};
  const at::Tensor result = has_result ? *problem.out.tensor
                                       : at::empty(at::IntArrayRef(sizes).slice(a.dim() == 2 ? 1 : 0),
                                                   a.options().dtype(at::kFloat).device(at::kMeta));
  Contest contest{"matmul",
                  std::move(kernels),
                  0,
                  {layout_of(result), layout_of(a), layout_of(b), has_c ? layout_of(*problem.c.tensor) : at::Tensor()},
                  1,
                  [](const std::vector<at::Tensor>& of) {
                    matmul("matmul", of[0], of[1], of[2], of[3], 1, of[3].defined() ? 1 : 0);
                  }};
  // The one that every adapter of this kind has, for every product.
  const auto simplest = std::find_if(std::begin(kCandidates), std::end(kCandidates), [](const Candidate& candidate) {
    return candidate.types == Types::any && is_here(candidate.where);
  });
  contest.reference = simplest - std::begin(kCandidates);
  return contest;
}

// The one that was measured for products like this, or else the table's.
const Candidate& choose_by_time(Problem& problem, Compute compute) {
  const Problem given = problem;
  const uint64_t key = key_of(given, compute);
  const Candidate& first = first_of_table(problem, compute);
  const auto elements = given.batches * (given.rows * given.columns + (given.rows + given.columns) * given.depth);
  const int64_t number = choose_measured(key, &first - kCandidates, given.work() + 16 * elements,
                                         [&] { return contest_of(first, given, compute); });
  if (number == &first - kCandidates || number >= static_cast<int64_t>(std::size(kCandidates))) return first;
  Problem turned = given;
  turn_for(kCandidates[number], turned);
  if (!can_run(kCandidates[number], turned, compute)) return first;  // other sizes share the key
  problem = turned;
  return kCandidates[number];
}

// Turns the product so that a vector is its column.
const Candidate& choose(Problem& problem, Compute compute) {
  if (problem.rows == 1 && problem.columns > 1) problem.transpose();
  if (const Candidate* wanted = forced; wanted && !target().software) [[unlikely]] {
    turn_for(*wanted, problem);
    if (can_run(*wanted, problem, compute)) return *wanted;
  }
  return choices_are_on() ? choose_by_time(problem, compute) : first_of_table(problem, compute);
}

const Candidate& choose(Problem& problem, Compute compute, int64_t number) {
  if (number == kChosen) return choose(problem, compute);
  if (problem.rows == 1 && problem.columns > 1) problem.transpose();
  TORCH_CHECK_VALUE(number >= 0 && number < static_cast<int64_t>(std::size(kCandidates)), "webgpu: there is no kernel ",
                    number, " for products");
  const Candidate& wanted = kCandidates[number];
  turn_for(wanted, problem);
  TORCH_CHECK_VALUE(can_run(wanted, problem, compute), "webgpu: the kernel '", wanted.name,
                    "' does not take this product");
  return wanted;
}

// Tiles have no rest of steps, and lanes load side by side what lies so.
Walk walk_of_tile(const Operand& operand, Walk walk, int64_t depth) {
  if (walk == Walk::across || (walk == Walk::along && depth % 4 == 0)) return walk;
  return operand.second == 1 || operand.first != 1 ? Walk::elements : Walk::elements_across;
}

bool stores_fours(const MatmulSpec& spec, const Problem& problem) {
  if (const EpilogueText* text = spec.epilogue->text) {
    return !text->fours.empty() && !problem.transposed && problem.columns % 4 == 0;
  }
  return problem.out.second == 1 && problem.columns % 4 == 0 && (problem.rows == 1 || problem.out.first % 4 == 0) &&
         in_quads(problem.out, problem.batches);
}

void choose_walks(MatmulSpec& spec, const Problem& problem) {
  const auto kernel = static_cast<MatmulKernel>(spec.kernel);
  const bool by_vector = kernel == MatmulKernel::vector, tiled = kernel == MatmulKernel::tiled;
  Walk a =
      walk_of(problem.a, problem.rows, problem.batches, tiled || (kernel == MatmulKernel::subgroup && spec.lines == 4));
  Walk b = walk_of(problem.b, problem.columns, problem.batches, !by_vector);
  if (kernel == MatmulKernel::join) a = b = problem.columns % 4 == 0 ? Walk::along : Walk::elements;
  // A buffer has one type.
  if (spec.binding[1] == spec.binding[2] && spec.dtype[1] != spec.dtype[2]) a = b = Walk::elements;
  if (tiled) {
    a = walk_of_tile(problem.a, a, problem.depth);
    b = walk_of_tile(problem.b, b, problem.depth);
  }
  const bool scattered = by_vector || (kernel == MatmulKernel::thin && b != Walk::across);
  const bool four_columns = !scattered && stores_fours(spec, problem);
  spec.walk[0] = static_cast<uint8_t>(four_columns ? Walk::across : Walk::elements);
  spec.walk[1] = static_cast<uint8_t>(a);
  spec.walk[2] = static_cast<uint8_t>(b);
  spec.ragged = problem.depth % 4 != 0;
  if (!spec.epilogue->adds || scattered) return;
  const Operand& c = problem.c;
  bool alone = true;
  for (int i = 0; i < 3; ++i) alone &= spec.binding[i] != spec.binding[3];
  const bool quads = alone && c.second == 1 && c.first % 4 == 0 && problem.columns % 4 == 0 &&
                     in_quads(c, problem.batches) && c.tensor->is_floating_point();
  spec.walk[3] = static_cast<uint8_t>(quads ? Walk::across : c.second == 0 ? Walk::along : Walk::elements);
  spec.same_c = c.first == 0;
}

// How many workgroups, and for kernels that take their tasks in chunks, how many tasks each.
Chunks grid_of(MatmulKernel kernel, uint32_t lines, const Problem& problem) {
  const auto tiles = [&](int64_t rows, int64_t columns) {
    return up(problem.rows, rows) * up(problem.columns, columns) * problem.batches;
  };
  constexpr int64_t kMostGroups = 65535, kFatGroups = 64;  // a workgroup begins with some hundred instructions
  switch (kernel) {
    case MatmulKernel::shared:
      return {static_cast<uint32_t>(std::min(tiles(kMatmulShared, kMatmulShared), kMostGroups)), 1};
    case MatmulKernel::subgroup:
      return {static_cast<uint32_t>(
                  std::min(tiles(int64_t{lines} * kMatmulSubgroup, int64_t{4} * kMatmulSubgroup), kFatGroups)),
              1};
    default: {
      const bool by_vector = kernel == MatmulKernel::vector;
      const int64_t tasks = by_vector ? tiles(lines, 1) : tiles(kMatmulTile, kMatmulTile);
      const int64_t lanes = by_vector ? 1 : target().workgroup;
      if (!target().software) return chunks_of(tasks, lanes);
      constexpr int64_t kWork = 1 << 15, kGroups = 16;  // two cores share sixteen
      const int64_t groups = std::clamp<int64_t>(problem.work() / kWork, 1, kGroups),
                    chunk = up(up(tasks, groups), lanes) * lanes;
      return {static_cast<uint32_t>(up(tasks, chunk)), static_cast<uint32_t>(chunk)};
    }
  }
}

// A long inner side of a small product is cut into so many parts: for parallel work, and for the sum's accuracy.
int64_t parts_of(const at::Tensor& out, const at::Tensor& a) {
  constexpr int64_t kSmall = 1024, kLong = 1 << 13, kSpan = 512, kMost = 64;
  const int64_t depth = a.size(-1);
  if (out.numel() > kSmall || depth < kLong || (out.dim() > 2 && out.size(0) > 1)) return 1;
  return std::min(depth / kSpan, kMost);
}

// Where a product has too few tiles to occupy a GPU, its inner side is cut into so many parts, which kJoin adds.
int64_t parts_on_gpu(const Candidate& candidate, const Problem& problem) {
  constexpr int64_t kLeast = 64;  // steps of a part
  if (!is_for_gpus_alone(candidate.kernel) || problem.batches > 1 || problem.depth < 8 * kLeast) return 1;
  const auto [x, y, z] = groups_of(candidate, problem);
  if (x * y >= kGpuUnits) return 1;
  const int64_t of_unit = candidate.kernel == MatmulKernel::thin ? 1 : 2;  // thin ones have more lanes
  const int64_t enough = of_unit * kGpuUnits;
  const int64_t wanted = std::min(up(enough, x * y), problem.depth / kLeast);
  for (int64_t parts = wanted; parts < 2 * wanted; ++parts) {  // of one length, if that can be
    if (problem.depth % (16 * parts) == 0) return parts;
  }
  return wanted;
}

// The parts of a product, one behind the other, as a batch of products.
at::Tensor products_of_parts(const char* name, const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype,
                             int64_t span) {
  const int64_t rows = a.size(-2), columns = b.size(-1), depth = a.size(-1), parts = depth / span,
                rest = depth - parts * span;
  const at::Tensor partial = empty_tensor({parts + (rest > 0 ? 1 : 0), rows, columns}, {}, dtype);
  const auto multiply = [&](int64_t first, int64_t count, int64_t length) {
    const auto a_strides = a.strides().slice(a.dim() - 2), b_strides = b.strides().slice(b.dim() - 2);
    const int64_t step = first * span;
    matmul(name, partial.narrow(0, first, count),
           a.as_strided({count, rows, length}, {span * a_strides[1], a_strides[0], a_strides[1]},
                        a.storage_offset() + step * a_strides[1]),
           b.as_strided({count, length, columns}, {span * b_strides[0], b_strides[0], b_strides[1]},
                        b.storage_offset() + step * b_strides[0]));
  };
  multiply(0, parts, span);
  if (rest) multiply(parts, 1, rest);
  return partial;
}

// For kJoin: `partial` as a product whose steps are its parts.
Problem joined(const at::Tensor& out, const at::Tensor& partial, const at::Tensor& c) {
  const Operand parts = operand_of(partial, false);
  return {partial.size(1),        partial.size(2), partial.size(0), 1,
          operand_of(out, false), parts,           parts,           operand_of(c, false)};
}

int64_t span_of(int64_t depth, int64_t parts) { return up(up(depth, parts), 16) * 16; }

// The parts as a batch of products, then their sum.
void multiply_in_parts(const char* name, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                       const at::Tensor& c, const at::Scalar& alpha, const at::Scalar& beta, int64_t parts) {
  const at::Tensor partial = products_of_parts(name, a, b, out.is_floating_point() ? at::kFloat : out.scalar_type(),
                                               a.size(-1) / parts / 4 * 4);
  const at::Tensor sum = partial.sum(at::IntArrayRef{0}, false, partial.scalar_type());
  if (c.defined()) {
    out.copy_(c.to(partial.scalar_type()).mul(beta).add_(sum.view(out.sizes()), alpha));
  } else {
    out.copy_(alpha.equal(1) ? sum.view(out.sizes()) : sum.view(out.sizes()).mul(alpha));
  }
}

// With bindings, dtypes and the parameters of operands in place: the rest, and off it goes.
void dispatch(Launch& launch, MatmulSpec& spec, const Problem& problem, const Candidate& candidate) {
  const bool for_gpus = is_for_gpus_alone(candidate.kernel);
  const bool in_lines = candidate.kernel == MatmulKernel::subgroup || candidate.kernel == MatmulKernel::vector;
  if (in_lines || for_gpus) choose_walks(spec, problem);
  if (for_gpus) {
    const auto groups = groups_of(candidate, problem);
    std::copy(groups.begin(), groups.end(), launch.grid);
  } else {
    const auto [groups, chunk] = grid_of(candidate.kernel, candidate.lines, problem);
    launch.params[MatmulParams::kChunk] = chunk;
    launch.grid[0] = groups;
  }
  launch.params[MatmulParams::kRows] = static_cast<uint32_t>(problem.rows);
  launch.params[MatmulParams::kColumns] = static_cast<uint32_t>(problem.columns);
  launch.params[MatmulParams::kDepth] = static_cast<uint32_t>(problem.depth);
  launch.params[MatmulParams::kBatches] = static_cast<uint32_t>(problem.batches);
  set_key(launch, Family::matmul, spec);
  launch.flops = problem.flops();
  launch.print = &print;
  dispatch_chosen(launch);
}

// Binds the operands and dispatches the kernel. False where no bindings hold them.
bool run(const char* name, const Problem& problem, const Candidate& candidate, Compute compute,
         const Epilogue& epilogue, const at::Scalar& alpha, const at::Scalar& beta) {
  MatmulSpec spec{};
  spec.epilogue = &epilogue;
  spec.kernel = static_cast<uint8_t>(candidate.kernel);
  spec.lines = candidate.lines;
  spec.compute = static_cast<uint8_t>(compute);
  Launch launch;
  const Operand* const operands[] = {&problem.out, &problem.a, &problem.b, &problem.c};
  const uint32_t operand_count = spec.epilogue->adds ? 4 : 3;
  Part parts[4];
  for (uint32_t i = 0; i < operand_count; ++i) parts[i] = part_of(*operands[i]->tensor);
  if (!bind_parts(launch, {parts, operand_count})) return false;
  for (uint32_t i = 0; i < operand_count; ++i) {
    const at::Tensor& tensor = *operands[i]->tensor;
    spec.dtype[i] = static_cast<uint8_t>(kernel_dtype(tensor.scalar_type(), name));
    spec.binding[i] = static_cast<uint8_t>(parts[i].binding);
    uint32_t* place = &launch.params[MatmulParams::offset(i)];
    place[0] = static_cast<uint32_t>(offset_in(parts[i], tensor));
    place[1] = static_cast<uint32_t>(operands[i]->batch);
    place[2] = static_cast<uint32_t>(operands[i]->first);
    place[3] = static_cast<uint32_t>(operands[i]->second);
  }
  write_scalar(&launch.params[MatmulParams::kScalars], compute, alpha);
  write_scalar(&launch.params[MatmulParams::kScalars + 2], compute, beta);
  launch.param_words = MatmulParams::kWords;
  dispatch(launch, spec, problem, candidate);
  return true;
}

// An empty inner dimension gives 0.
void multiply_nothing(const at::Tensor& out, const at::Tensor& c, const at::Scalar& beta) {
  if (!c.defined()) {
    out.zero_();
    return;
  }
  if (!c.is_same(out)) out.copy_(c);
  out.mul_(beta);
}

// Halves the side of an operand's dimension: the number `which` of out, a, b and c.
void multiply_halves(const char* name, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                     const at::Tensor& c, const at::Scalar& alpha, const at::Scalar& beta, const Epilogue* epilogue,
                     size_t which, int64_t dim) {
  const at::Tensor operands[] = {out, a, b, c};
  enum Side { batches, rows, columns, depth };
  constexpr Side kRowSide[] = {rows, rows, depth, rows}, kColumnSide[] = {columns, depth, columns, columns};
  const at::Tensor& large = operands[which];
  const auto side_of = [&](size_t operand, int64_t d) {
    const int64_t from_end = operands[operand].dim() - d;
    return from_end == 1 ? kColumnSide[operand] : from_end == 2 ? kRowSide[operand] : batches;
  };
  const Side side = side_of(which, dim);
  const int64_t size = large.size(dim), half = half_of(size);
  const auto part = [&](size_t operand, int64_t begin, int64_t count) {
    const at::Tensor& tensor = operands[operand];
    for (int64_t d = 0; tensor.defined() && d < tensor.dim(); ++d) {
      if (side_of(operand, d) == side) return tensor.narrow(d, begin, count);
    }
    return tensor;
  };
  if (side != depth) {
    for (const auto& [begin, count] : {std::pair{int64_t{0}, half}, {half, size - half}}) {
      const at::Tensor some = part(0, begin, count);
      matmul(name, some, part(1, begin, count), part(2, begin, count), c.is_same(out) ? some : part(3, begin, count),
             alpha, beta, epilogue);
    }
    return;
  }
  if (epilogue) throw_too_large(name, large);
  // A sum in two parts is not to be rounded between them.
  const bool exact = out.scalar_type() == at::kFloat || !out.is_floating_point();
  const at::Tensor sum = exact ? out : empty_tensor(out.sizes(), {}, at::kFloat);
  matmul(name, sum, part(1, 0, half), part(2, 0, half), c, alpha, beta);
  matmul(name, sum, part(1, half, size - half), part(2, half, size - half), sum, alpha, 1);
  if (!exact) out.copy_(sum);
}

// Bindings cannot hold the operands: halves the side along which the widest one spans most memory.
void multiply_in_windows(const char* name, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                         const at::Tensor& c, const at::Scalar& alpha, const at::Scalar& beta,
                         const Epilogue* epilogue) {
  const at::Tensor operands[] = {out, a, b, c};
  const at::Tensor& large = widest(operands);
  const int64_t dim = widest_dim(large);
  if (dim < 0) throw_too_large(name, large);
  multiply_halves(name, out, a, b, c, alpha, beta, epilogue, static_cast<size_t>(&large - operands), dim);
}

}  // namespace

void matmul(const char* name, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& c,
            const at::Scalar& alpha, const at::Scalar& beta, const Epilogue* epilogue) {
  if (out.numel() == 0) return;
  if (a.size(-1) == 0 && !epilogue) {
    multiply_nothing(out, c, beta);
    return;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(out.scalar_type() != at::kBool, "\"", name, "\" not implemented for 'Bool'");
  const at::ScalarType factors = at::isReducedFloatingType(out.scalar_type()) ? at::kFloat : out.scalar_type();
  check_fits(factors, alpha);
  check_fits(factors, beta);
  const auto shares = [&](const at::Tensor& input) { return input.defined() && buffer_of(input) == buffer_of(out); };
  if (shares(a) || shares(b) || (shares(c) && !c.is_same(out))) {
    // A buffer that is written is not read: out= may name a part of an operand's.
    const at::Tensor result = empty_tensor(out.sizes(), {}, out.scalar_type());
    matmul(name, result, a, b, c, alpha, beta, epilogue);
    out.copy_(result);
    return;
  }
  const bool is_one = !alpha.isBoolean() && alpha.equal(1);
  Problem problem{out.size(-2),           out.size(-1),         a.size(-1),          out.dim() > 2 ? out.size(0) : 1,
                  operand_of(out, false), operand_of(a, false), operand_of(b, true), operand_of(c, false)};
  if (problem.flops() > most_flops() && out.numel() > 1) [[unlikely]] {
    const auto sizes = out.sizes();
    const int64_t longest = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
    multiply_halves(name, out, a, b, c, alpha, beta, epilogue, 0, longest);
    return;
  }
  const Compute compute = compute_type(kernel_dtype(out.scalar_type(), name));
  const Candidate* candidate = &choose(problem, compute);
  if (const int64_t parts = parts_of(out, a); parts > 1 && !is_for_gpus_alone(candidate->kernel) && !epilogue &&
                                              (out.is_floating_point() || (is_one && !c.defined()))) {
    multiply_in_parts(name, out, a, b, c, alpha, beta, parts);
    return;
  }
  at::Tensor partial;
  if (const int64_t parts = parts_on_gpu(*candidate, problem); parts > 1) {
    partial = products_of_parts(name, a, b, at::kFloat, span_of(problem.depth, parts));
    problem = joined(out, partial, c);
    candidate = &kJoin;
  }

  const Epilogue& formula = epilogue ? *epilogue : c.defined() ? kAdded : is_one ? kProduct : kScaled;
  if (!run(name, problem, *candidate, compute, formula, alpha, beta)) {
    multiply_in_windows(name, out, a, b, c, alpha, beta, epilogue);
  }
}

void add_parts(const char* name, const at::Tensor& out, const at::Tensor& parts) {
  TORCH_INTERNAL_ASSERT(!target().software && parts.scalar_type() == at::kFloat);
  if (!run(name, joined(out, parts, {}), kJoin, Compute::f32, kProduct, 1, 0)) throw_too_large(name, parts);
}

namespace {

// Of a @ b, whose elements an epilogue takes.
Problem problem_of(const at::Tensor& a, const at::Tensor& b) {
  return {a.size(-2),         b.size(-1),           a.size(-1),          a.dim() > 2 ? a.size(0) : 1,
          {nullptr, 0, 0, 0}, operand_of(a, false), operand_of(b, true), {nullptr, 0, 0, 0}};
}

}  // namespace

Candidates matmul_candidates(const at::Tensor& a, const at::Tensor& b) {
  Candidates found;
  for (const Candidate& candidate : kCandidates) {
    Problem problem = problem_of(a, b);
    if (problem.rows == 1 && problem.columns > 1) problem.transpose();
    turn_for(candidate, problem);
    if (can_run(candidate, problem, Compute::f32)) found.emplace_back(&candidate - kCandidates, candidate.name);
  }
  return found;
}

void matmul_into(const EpilogueCall& call, const at::Tensor& a, const at::Tensor& b) {
  const std::string& label = call.epilogue.text->label;
  TORCH_CHECK_VALUE(
      a.dim() == b.dim() && (a.dim() == 2 || (a.dim() == 3 && a.size(0) == b.size(0))) && a.size(-1) == b.size(-2),
      label, ": ", a.sizes(), " and ", b.sizes(), " cannot be multiplied");
  const auto is_factor = [](const at::Tensor& tensor) {
    return tensor.is_floating_point() || tensor.scalar_type() == at::kChar || tensor.scalar_type() == at::kByte;
  };
  TORCH_CHECK_VALUE(is_factor(a) && is_factor(b), label, ": takes floats, int8 and uint8");
  Problem problem = problem_of(a, b);
  if (problem.rows * problem.columns * problem.batches == 0) return;
  const Candidate* candidate = &choose(problem, Compute::f32, call.candidate);
  at::Tensor partial;
  if (const int64_t parts = parts_on_gpu(*candidate, problem); parts > 1) {
    partial = products_of_parts(label.c_str(), a, b, at::kFloat, span_of(problem.depth, parts));
    problem = joined({}, partial, {});
    problem.out.tensor = problem.c.tensor = nullptr;
    candidate = &kJoin;
  }

  MatmulSpec spec{};
  spec.epilogue = &call.epilogue;
  spec.kernel = static_cast<uint8_t>(candidate->kernel);
  spec.lines = candidate->lines;
  spec.compute = static_cast<uint8_t>(Compute::f32);
  spec.transposed = problem.transposed;
  EpilogueBinder binder(*call.epilogue.text, {*problem.a.tensor, *problem.b.tensor}, call.tensors, call.read_only);
  Launch launch;
  binder.bind(launch);
  const Operand* const operands[] = {&problem.a, &problem.b};
  for (uint32_t i = 0; i < 2; ++i) {
    spec.dtype[i + 1] = static_cast<uint8_t>(kernel_dtype(operands[i]->tensor->scalar_type(), label.c_str()));
    spec.binding[i + 1] = static_cast<uint8_t>(i);
    uint32_t* place = &launch.params[MatmulParams::offset(i + 1)];
    place[0] = binder.offset(i);
    place[1] = static_cast<uint32_t>(operands[i]->batch);
    place[2] = static_cast<uint32_t>(operands[i]->first);
    place[3] = static_cast<uint32_t>(operands[i]->second);
  }
  binder.pass(launch, call.words);
  dispatch(launch, spec, problem, *candidate);
  binder.copy_back();
}

void force_matmul(const std::string& name) {
  forced = nullptr;
  for (const Candidate& candidate : kCandidates) {
    if (candidate.name == name) forced = &candidate;
  }
  TORCH_CHECK_VALUE(name.empty() || forced.load(), "webgpu: there is no kernel of matrix products named ", name);
}

}  // namespace torch_webgpu
