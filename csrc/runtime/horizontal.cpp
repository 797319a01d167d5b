#include "runtime/horizontal.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "runtime/fused_text.h"
#include "runtime/schedule.h"
#include "runtime/segment_launch.h"

namespace torch_webgpu {
namespace {

using Step = Tape::Step;
using SlotBinding = Tape::SlotBinding;

constexpr uint32_t kMostParts = 8;  // of one kernel: each has a number in the first two vectors of its parameters
constexpr uint32_t kHeadVectors = 2;
constexpr size_t kMostTexts = 4096;

bool is_same(const SlotBinding& a, const SlotBinding& b) {
  return a.slot == b.slot && a.window == b.window && a.size_bytes == b.size_bytes;
}

// A launch made of several.
class Group {
 public:
  Group(const Tape& tape, uint32_t most_bindings) : tape_(tape), most_bindings_(most_bindings) {}

  bool add(uint32_t number) {
    const Step& step = tape_.steps()[number];
    const KernelText& text = *tape_.text(number);
    if (parts_.size() == kMostParts) return false;
    if (!parts_.empty() && text.workgroup_size() != tape_.text(parts_.front().number)->workgroup_size()) return false;
    const uint32_t vectors = vectors_ + vectors_of(step.param_words);
    if (vectors * 4 > kParamWords || (random_ && step.random_word != kNoWord)) return false;
    std::vector<Bound> bound = bound_;
    Part part{number, vectors_, {}};
    for (uint32_t i = 0; i < step.binding_count; ++i) {
      const auto& storage = text.storages()[i];
      const SlotBinding& place = tape_.bindings(step)[i];
      auto found = std::find_if(bound.begin(), bound.end(), [&](const Bound& other) {
        return !storage.is_written && !other.is_written && other.type == storage.type && is_same(other.place, place);
      });
      if (found == bound.end()) found = bound.insert(bound.end(), {place, storage.type, storage.is_written});
      part.bindings.push_back(static_cast<uint32_t>(found - bound.begin()));
    }
    if (bound.size() > most_bindings_) return false;
    bound_ = std::move(bound);
    vectors_ = vectors;
    random_ |= step.random_word != kNoWord;
    parts_.push_back(std::move(part));
    return true;
  }

  size_t size() const { return parts_.size(); }
  std::vector<uint32_t> members() const {
    std::vector<uint32_t> numbers;
    numbers.reserve(parts_.size());
    for (const Part& part : parts_) numbers.push_back(part.number);
    return numbers;
  }

  Signature signature() const {
    Signature signature{static_cast<uint32_t>(bound_.size()), 0, 1};
    for (uint32_t i = 0; i < bound_.size(); ++i) signature.read_only |= bound_[i].is_written ? 0 : 1u << i;
    return signature;
  }

  // Kernels of the same parts, bound alike, have one text and one key.
  KernelKey key() const {
    std::string name;
    for (const Part& part : parts_) {
      name += std::to_string(tape_.steps()[part.number].kernel->id) + ' ' + std::to_string(part.first_param);
      for (const uint32_t binding : part.bindings) name += ',' + std::to_string(binding);
      name += ';';
    }
    return key_of_fused(name);
  }

  KernelSource source() const {
    FusedText fused;
    for (const Bound& bound : bound_) fused.bind(bound.type, bound.is_written);
    for (size_t i = 0; i < parts_.size(); ++i) {
      const KernelText& text = *tape_.text(parts_[i].number);
      const std::string prefix = "part" + std::to_string(i) + "_", begin = i ? end_of(i - 1) : "0u";
      std::vector<KernelText::Access> accesses;
      for (const uint32_t binding : parts_[i].bindings) accesses.push_back({FusedText::array_name(binding)});
      fused.add(text, text.part(prefix, accesses, std::to_string(parts_[i].first_param)), end_of(i),
                text.call(prefix, begin, end_of(i) + " - " + begin));
    }
    return fused.source(tape_.text(parts_.front().number)->workgroup_size(), kParamWords / 4);
  }

  void append_to(Tape::Program& program, std::shared_ptr<Kernel> kernel) const {
    Step step{};
    step.kernel = std::move(kernel);
    step.first_binding = static_cast<uint32_t>(program.bindings.size());
    step.binding_count = static_cast<uint32_t>(bound_.size());
    step.first_word = static_cast<uint32_t>(program.words.size());
    step.param_words = vectors_ * 4;
    step.random_word = kNoWord;
    step.grid[1] = step.grid[2] = 1;
    for (const Bound& bound : bound_) program.bindings.push_back(bound.place);
    program.words.resize(program.words.size() + step.param_words);
    uint32_t* words = &program.words[step.first_word];
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Step& part = tape_.steps()[parts_[i].number];
      words[i] = step.grid[0] += part.grid[0];
      std::copy_n(tape_.params(part), part.param_words, &words[size_t{4} * parts_[i].first_param]);
      if (part.random_word != kNoWord) {
        step.random_word = 4 * parts_[i].first_param + part.random_word;
        step.random_source = part.random_source;
      }
    }
    program.steps.push_back(std::move(step));
  }

 private:
  struct Bound {
    SlotBinding place;
    std::string type;
    bool is_written;
  };
  struct Part {
    uint32_t number, first_param;  // of the step, and of the vectors of its parameters
    std::vector<uint32_t> bindings;
  };

  static std::string end_of(size_t part) {
    return std::string(KernelText::kParams) + "[" + std::to_string(part / 4) + "]." + "xyzw"[part % 4];
  }
  const Tape& tape_;
  const uint32_t most_bindings_;
  std::vector<Bound> bound_;
  std::vector<Part> parts_;
  uint32_t vectors_ = kHeadVectors;
  bool random_ = false;
};

}  // namespace

std::shared_ptr<const KernelText> text_of(const Launch& launch) {
  static std::mutex mutex;
  static auto* texts = new std::unordered_map<KernelKey, std::shared_ptr<const KernelText>, KernelKeyHash>;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = texts->find(launch.key); found != texts->end()) return found->second;
  }
  auto text = KernelText::read(launch.print(launch), launch.signature());
  auto shared = text ? std::make_shared<const KernelText>(std::move(*text)) : nullptr;
  const std::lock_guard lock(mutex);
  if (texts->size() >= kMostTexts) texts->clear();
  texts->emplace(launch.key, shared);
  return shared;
}

bool may_be_part(const Tape& tape, uint32_t number, const Device& device) {
  const uint32_t most_groups = device.info.type == "cpu" ? 16 : 256;
  const Step& step = tape.steps()[number];
  return step.kernel && tape.text(number) && !step.windowed && !step.reports && step.grid[0] <= most_groups &&
         step.grid[1] == 1 && step.grid[2] == 1;
}

uint32_t bindings_of(const Device& device) {
  return std::min(kMaxBindings, device.limits.maxStorageBuffersPerShaderStage);
}

void fuse_horizontally(Tape& tape, KernelCache& kernels, const Device& device, const Gathered& gathered) {
  Schedule schedule(tape);
  Tape::Program program;
  const uint32_t most_bindings = bindings_of(device);
  const auto fuse = [&](auto&& fused, const std::vector<uint32_t>& steps, size_t fewest) {
    for (const uint32_t step : steps) fused.add(step);
    if (fused.size() < fewest) return false;
    fused.append_to(program, kernels.get(fused.key(), fused.signature(), [&] { return fused.source(); }));
    schedule.take(fused.members());
    return true;
  };
  while (!schedule.ready().empty()) {
    const uint32_t first = schedule.ready().front();
    const bool in_segments = gathered.has(tape, first);
    std::vector<uint32_t> steps;
    for (const uint32_t step : schedule.ready()) {
      if (gathered.has(tape, step) == in_segments && may_be_part(tape, step, device)) steps.push_back(step);
    }
    bool is_fused = false;
    if (in_segments) {
      // The fewer kernels share a launch, the fewer texts there are.
      std::stable_sort(steps.begin(), steps.end(),
                       [&](uint32_t a, uint32_t b) { return tape.steps()[a].kernel->id < tape.steps()[b].kernel->id; });
      is_fused = fuse(SegmentLaunch(tape, gathered, most_bindings), steps, 1);
    } else if (!steps.empty() && steps.front() == first) {
      is_fused = fuse(Group(tape, most_bindings), steps, 2);
    }
    if (is_fused) continue;
    tape.append_to(program, first);
    schedule.take({first});
  }
  tape.replace(std::move(program));
}

}  // namespace torch_webgpu
