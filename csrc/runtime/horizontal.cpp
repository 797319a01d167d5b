#include "runtime/horizontal.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace torch_webgpu {
namespace {

using Step = Tape::Step;
using SlotBinding = Tape::SlotBinding;

constexpr uint64_t kFamily = 40;    // in the first word of a key
constexpr uint32_t kMostParts = 8;  // of one kernel: each has a number in the first two vectors of its parameters
constexpr uint32_t kHeadVectors = 2;
constexpr size_t kMostTexts = 4096;

uint32_t vectors_of(uint32_t words) { return (words + 3) / 4; }

// A launch beyond this has work enough to fill the device by itself.
uint32_t most_groups(const Device& device) { return device.info.type == "cpu" ? 16 : 256; }

bool is_same(const SlotBinding& a, const SlotBinding& b) {
  return a.slot == b.slot && a.window == b.window && a.size_bytes == b.size_bytes;
}

// A launch made of several.
class Group {
 public:
  Group(const Tape& tape, const Device& device)
      : tape_(tape), most_bindings_(std::min(kMaxBindings, device.limits.maxStorageBuffersPerShaderStage)) {}

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
    static std::mutex mutex;
    static auto* numbers = new std::unordered_map<std::string, uint64_t>;
    std::string name;
    for (const Part& part : parts_) {
      name += std::to_string(tape_.steps()[part.number].kernel->id) + ' ' + std::to_string(part.first_param);
      for (const uint32_t binding : part.bindings) name += ',' + std::to_string(binding);
      name += ';';
    }
    const std::lock_guard lock(mutex);
    KernelKey key;
    key.words = {kFamily, numbers->emplace(name, numbers->size() + 1).first->second, 0, 0};
    return key;
  }

  KernelSource source() const {
    KernelSource source;
    std::vector<std::string> directives;
    std::vector<std::string> builtins{"workgroup_id"};
    std::string storages, texts, calls;
    for (size_t i = 0; i < bound_.size(); ++i) {
      storages += "@group(0) @binding(" + std::to_string(i) + ") var<storage, " +
                  (bound_[i].is_written ? "read_write" : "read") + "> " + storage_name(i) + ": " + bound_[i].type +
                  ";\n";
    }
    for (size_t i = 0; i < parts_.size(); ++i) {
      const KernelText& text = *tape_.text(parts_[i].number);
      const std::string prefix = "part" + std::to_string(i) + "_";
      std::vector<std::string> names;
      for (const uint32_t binding : parts_[i].bindings) names.push_back(storage_name(binding));
      texts += text.part(prefix, names, parts_[i].first_param) + "\n";
      add_new(directives, text.directives());
      add_new(builtins, text.builtins());
      const std::string begin = i ? end_of(i - 1) : "0u";
      const std::string call = text.call(prefix, begin, end_of(i) + " - " + begin) + ";";
      calls += (i ? " else " : "  ");
      calls += i + 1 < parts_.size() ? "if (workgroup_id.x < " + end_of(i) + ") {\n" : "{\n";
      calls += "    " + call + "\n  }";
      if (source.label.find(text.label()) == std::string::npos) {
        source.label += (source.label.empty() ? "" : " | ") + text.label();
      }
    }
    for (const auto& directive : directives) source.wgsl += directive + "\n";
    source.wgsl += storages + "@group(1) @binding(0) var<uniform> " + KernelText::kParams + ": array<vec4<u32>, " +
                   std::to_string(kParamWords / 4) + ">;\n" + texts + "@compute @workgroup_size(" +
                   tape_.text(parts_.front().number)->workgroup_size() + ")\nfn main(";
    for (const auto& builtin : builtins) {
      source.wgsl += "@builtin(" + builtin + ") " + builtin + ": " + KernelText::type_of_builtin(builtin) + ", ";
    }
    source.wgsl += ") {\n" + calls + "\n}\n";
    return source;
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

  static std::string storage_name(size_t binding) { return "bound" + std::to_string(binding); }
  static std::string end_of(size_t part) {
    return std::string(KernelText::kParams) + "[" + std::to_string(part / 4) + "]." + "xyzw"[part % 4];
  }
  static void add_new(std::vector<std::string>& all, const std::vector<std::string>& some) {
    for (const auto& one : some) {
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
  }

  const Tape& tape_;
  const uint32_t most_bindings_;
  std::vector<Bound> bound_;
  std::vector<Part> parts_;
  uint32_t vectors_ = kHeadVectors;
  bool random_ = false;
};

// The steps of a tape with what each has to wait for.
class Schedule {
 public:
  explicit Schedule(const Tape& tape) : tape_(tape), nodes_(tape.steps().size()) {
    struct Slot {
      int64_t writer = -1;
      std::vector<uint32_t> readers;
    };
    std::vector<Slot> slots(tape.slots().size());
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const Step& step = tape.steps()[i];
      for (uint32_t b = 0; b < step.binding_count; ++b) {
        Slot& slot = slots[tape.bindings(step)[b].slot];
        if (slot.writer >= 0) depend(i, static_cast<uint32_t>(slot.writer));
        if (!writes(i, b)) {
          slot.readers.push_back(i);
          continue;
        }
        for (const uint32_t reader : slot.readers) depend(i, reader);
        slot = {i, {}};
      }
    }
    for (size_t i = nodes_.size(); i-- > 0;) {
      for (const uint32_t later : nodes_[i].later)
        nodes_[i].height = std::max(nodes_[i].height, nodes_[later].height + 1);
    }
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].waits_for == 0) ready_.push_back(i);
    }
  }

  // The steps that nothing holds back: first those with the longest way to the end.
  const std::vector<uint32_t>& ready() {
    std::sort(ready_.begin(), ready_.end(), [this](uint32_t a, uint32_t b) {
      return nodes_[a].height != nodes_[b].height ? nodes_[a].height > nodes_[b].height : a < b;
    });
    return ready_;
  }
  void take(const std::vector<uint32_t>& steps) {
    for (const uint32_t step : steps) {
      std::erase(ready_, step);
      for (const uint32_t later : nodes_[step].later) {
        if (--nodes_[later].waits_for == 0) ready_.push_back(later);
      }
    }
  }

 private:
  struct Node {
    std::vector<uint32_t> later;
    uint32_t waits_for = 0, height = 0;
  };

  bool writes(uint32_t number, uint32_t binding) const {
    if (!tape_.steps()[number].kernel) return binding == 1;  // a copy
    const auto& text = tape_.text(number);
    return !text || text->storages()[binding].is_written;
  }
  void depend(uint32_t later, uint32_t earlier) {
    if (later == earlier) return;
    nodes_[earlier].later.push_back(later);
    ++nodes_[later].waits_for;
  }

  const Tape& tape_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> ready_;
};

bool may_be_part(const Tape& tape, uint32_t number, uint32_t most) {
  const Step& step = tape.steps()[number];
  return step.kernel && tape.text(number) && !step.windowed && !step.reports && step.grid[0] <= most &&
         step.grid[1] == 1 && step.grid[2] == 1;
}

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

void fuse_horizontally(Tape& tape, KernelCache& kernels, const Device& device) {
  Schedule schedule(tape);
  Tape::Program program;
  const uint32_t most = most_groups(device);
  while (!schedule.ready().empty()) {
    const std::vector<uint32_t> ready = schedule.ready();
    std::vector<uint32_t> taken{ready.front()};
    Group group(tape, device);
    if (may_be_part(tape, ready.front(), most) && group.add(ready.front())) {
      for (size_t i = 1; i < ready.size(); ++i) {
        if (may_be_part(tape, ready[i], most)) group.add(ready[i]);
      }
    }
    if (group.size() > 1) {
      taken = group.members();
      group.append_to(program, kernels.get(group.key(), group.signature(), [&] { return group.source(); }));
    } else {
      tape.append_to(program, ready.front());
    }
    schedule.take(taken);
  }
  tape.replace(std::move(program));
}

}  // namespace torch_webgpu
