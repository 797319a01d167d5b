#include "runtime/segment_launch.h"

#include <algorithm>

namespace torch_webgpu {
namespace {

using Element = SegmentLaunch::Element;

constexpr uint32_t kOfPart = 2;  // words in front of a row's places: the part's first workgroup, and how many it has
constexpr uint32_t kMostGroups = 65535;

Element element_of(const std::string& array) {
  if (array == "array<u32>") return {1};
  if (array == "array<vec2<u32>>") return {2};
  if (array == "array<vec4<u32>>") return {4};
  if (array == "array<atomic<u32>>") return {1, true};
  return {};
}

std::string type_of(Element element) {
  if (element.is_atomic) return "atomic<u32>";
  return element.words == 1 ? "u32" : "vec" + std::to_string(element.words) + "<u32>";
}

std::string word_of_params(const std::string& vector, uint32_t word) {
  return std::string(KernelText::kParams) + "[" + vector + " + " + std::to_string(word / 4) + "u]." + "xyzw"[word % 4];
}

// Element `e` of an array, in whose binding elements are as long, longer or shorter.
std::string loaded(const std::string& array, Element bound, Element wanted) {
  const auto load = [&](const std::string& index) {
    return bound.is_atomic ? "atomicLoad(&" + array + "[" + index + "])" : array + "[" + index + "]";
  };
  if (bound.words == wanted.words) return load("e");
  if (bound.words < wanted.words) {
    const uint32_t count = wanted.words / bound.words;
    std::string all;
    for (uint32_t i = 0; i < count; ++i) {
      all += (i ? ", " : "") + load("e * " + std::to_string(count) + "u + " + std::to_string(i) + "u");
    }
    return type_of(wanted) + "(" + all + ")";
  }
  if (wanted.words == 1) {
    const bool four = bound.words == 4;
    return load(four ? "e >> 2u" : "e >> 1u") + (four ? "[e & 3u]" : "[e & 1u]");
  }
  return "select(" + load("e >> 1u") + ".xy, " + load("e >> 1u") + ".zw, (e & 1u) == 1u)";
}

// What the function that runs a kind is given.
std::vector<std::string> builtins_of(const KernelText& text) {
  std::vector<std::string> names = text.builtins();
  if (std::find(names.begin(), names.end(), "workgroup_id") == names.end()) names.emplace_back("workgroup_id");
  return names;
}

std::string kind_name(size_t kind) { return "kind" + std::to_string(kind) + "_"; }
std::string table_name(size_t kind) { return "table" + std::to_string(kind) + "_"; }
std::string place_name(size_t kind, size_t storage) { return table_name(kind) + "place" + std::to_string(storage); }
std::string load_name(size_t kind, size_t storage) { return table_name(kind) + "load" + std::to_string(storage); }

}  // namespace

bool SegmentLaunch::may_take(const Tape& tape, uint32_t step) {
  const auto& text = tape.text(step);
  if (!text || text->has_barriers() || tape.steps()[step].random_word != kNoWord) return false;
  // What it writes may lie in one segment, which has one type.
  Element written;
  return std::all_of(text->storages().begin(), text->storages().end(), [&](const auto& storage) {
    const Element element = element_of(storage.type);
    if (!storage.is_indexed || element.words == 0) return false;
    if (!storage.is_written) return true;
    if (written.words == 0) written = element;
    return written == element;
  });
}

uint32_t SegmentLaunch::param_vectors(const Kind& kind) const {
  return vectors_of(tape_.steps()[kind.parts.front().step].param_words);
}

uint32_t SegmentLaunch::record_vectors(const Kind& kind) const {
  return param_vectors(kind) + vectors_of(kOfPart + static_cast<uint32_t>(kind.columns.size()));
}

// The binding of a slot. What is written is declared as the text that writes it does, what is only read as suits most.
bool SegmentLaunch::bind(std::vector<Bound>& bound, uint32_t slot, Element element, bool is_written,
                         uint32_t& binding) const {
  auto found = std::find_if(bound.begin(), bound.end(), [&](const Bound& other) { return other.slot == slot; });
  if (found == bound.end()) found = bound.insert(found, {slot, element, is_written});
  if (is_written) {
    if (found->is_written && found->element != element) return false;
    found->element = element;
    found->is_written = true;
  } else if (!found->is_written && found->element.words < element.words) {
    found->element = element;
  }
  binding = static_cast<uint32_t>(found - bound.begin());
  return bound.size() <= most_bindings_;
}

bool SegmentLaunch::suits(const Kind& kind, uint32_t step, const std::vector<Column>& columns) const {
  const uint32_t other = kind.parts.front().step;
  if (tape_.text(other) != tape_.text(step) || tape_.steps()[other].param_words != tape_.steps()[step].param_words)
    return false;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (kind.columns[i].in_segment != columns[i].in_segment) return false;
    if (columns[i].in_segment && kind.columns[i].bindings != columns[i].bindings) return false;
  }
  return true;
}

bool SegmentLaunch::add(uint32_t number) {
  const auto& step = tape_.steps()[number];
  const KernelText& text = *tape_.text(number);
  if (!kinds_.empty() && text.workgroup_size() != text_of(kinds_.front()).workgroup_size()) return false;
  std::vector<Bound> bound = bound_;
  std::vector<Column> columns;
  Part part{number, {}};
  for (uint32_t i = 0; i < step.binding_count; ++i) {
    const auto& storage = text.storages()[i];
    const uint32_t slot = tape_.bindings(step)[i].slot;
    const auto* place = gathered_.of(slot);
    uint32_t binding = 0;
    if (!place && storage.is_written) return false;
    if (!bind(bound, place ? place->segment : slot, element_of(storage.type), storage.is_written, binding))
      return false;
    columns.push_back({place != nullptr, {binding}});
    part.places.push_back(place ? static_cast<uint32_t>(place->offset / kWindowBytes) : binding);
  }
  auto kind =
      std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& other) { return suits(other, number, columns); });
  const bool is_new = kind == kinds_.end();
  if (is_new && kinds_.size() == kMostKinds) return false;
  const uint32_t vectors = vectors_ + vectors_of(step.param_words) + vectors_of(kOfPart + step.binding_count);
  if (vectors * 4 > kTableWords || groups_ + step.grid[0] > kMostGroups) return false;
  if (is_new) kind = kinds_.insert(kind, {columns, {}});
  for (size_t i = 0; i < columns.size(); ++i) {
    auto& bindings = kind->columns[i].bindings;
    const uint32_t binding = columns[i].bindings.front();
    if (std::find(bindings.begin(), bindings.end(), binding) == bindings.end()) bindings.push_back(binding);
  }
  kind->parts.push_back(std::move(part));
  bound_ = std::move(bound);
  vectors_ = vectors;
  groups_ += step.grid[0];
  members_.push_back(number);
  return true;
}

Signature SegmentLaunch::signature() const {
  Signature signature{static_cast<uint32_t>(bound_.size()), 0, 1};
  for (uint32_t i = 0; i < bound_.size(); ++i) signature.read_only |= bound_[i].is_written ? 0 : 1u << i;
  return signature;
}

// How many parts a kind has is no part of it.
KernelKey SegmentLaunch::key() const {
  std::string name = "segments";
  for (const Bound& bound : bound_) name += ' ' + type_of(bound.element) + (bound.is_written ? "w" : "r");
  for (const Kind& kind : kinds_) {
    name += ';' + std::to_string(tape_.steps()[kind.parts.front().step].kernel->id) + ' ' +
            std::to_string(record_vectors(kind));
    for (const Column& column : kind.columns) {
      name += column.in_segment ? " s" : " ";
      for (const uint32_t binding : column.bindings) name += std::to_string(binding) + ',';
    }
  }
  return key_of_fused(name);
}

// Whether all parts read the elements of one array as they are.
bool SegmentLaunch::is_direct(const Kind& kind, size_t storage) const {
  const Column& column = kind.columns[storage];
  return !column.in_segment && column.bindings.size() == 1 &&
         bound_[column.bindings.front()].element == element_of(text_of(kind).storages()[storage].type);
}

std::vector<KernelText::Access> SegmentLaunch::accesses(size_t number) const {
  const Kind& kind = kinds_[number];
  std::vector<KernelText::Access> accesses;
  for (size_t i = 0; i < kind.columns.size(); ++i) {
    const Column& column = kind.columns[i];
    KernelText::Access access{FusedText::array_name(column.bindings.front())};
    if (column.in_segment) access.base = place_name(number, i);
    if (!is_direct(kind, i)) access.load = load_name(number, i);
    accesses.push_back(std::move(access));
  }
  return accesses;
}

std::string SegmentLaunch::load_function(size_t number, size_t storage) const {
  const Kind& kind = kinds_[number];
  const Column& column = kind.columns[storage];
  const Element wanted = element_of(text_of(kind).storages()[storage].type);
  const std::string place = place_name(number, storage);
  std::string text = "var<private> " + place + ": u32;\n";
  if (is_direct(kind, storage)) return text;
  text += "fn " + load_name(number, storage) + "(i: u32) -> " + type_of({wanted.words}) + " {\n  let e = ";
  text += column.in_segment ? place + " + i;\n" : "i;\n";
  const auto result = [&](uint32_t binding) {
    return "return " + loaded(FusedText::array_name(binding), bound_[binding].element, wanted) + ";";
  };
  const uint32_t last = column.bindings.back();
  if (column.bindings.size() == 1) return text + "  " + result(last) + "\n}\n";
  text += "  switch " + place + " {\n";
  for (const uint32_t binding : column.bindings) {
    text += "    " + (binding == last ? "default" : "case " + std::to_string(binding) + "u") + ": { " +
            result(binding) + " }\n";
  }
  return text + "  }\n}\n";
}

// Finds the row of the part that a workgroup belongs to: the last one that begins no later.
std::string SegmentLaunch::run_function(size_t number) const {
  const Kind& kind = kinds_[number];
  const KernelText& text = text_of(kind);
  const std::string row = table_name(number) + "row", stride = std::to_string(record_vectors(kind)) + "u",
                    head = std::string(KernelText::kParams) + "[" + std::to_string(number) + "u]",
                    params = std::to_string(param_vectors(kind)) + "u";
  const auto word = [&](uint32_t of_row) { return word_of_params(row + " + " + params, of_row); };
  std::string builtins;
  for (const auto& name : builtins_of(text)) builtins += name + ": " + KernelText::type_of_builtin(name) + ", ";
  std::string result = "fn " + table_name(number) + "run(" + builtins + ") {\n  " + row + " = " + head +
                       ".y;\n  for (var rows = " + head + ".z; rows > 1u;) {\n    let middle = rows / 2u;\n" +
                       "    let other = " + row + " + middle * " + stride +
                       ";\n    if (workgroup_id.x >= " + word_of_params("other + " + params, 0) + ") {\n      " + row +
                       " = other;\n      rows -= middle;\n    } else {\n      rows = middle;\n    }\n  }\n";
  for (size_t i = 0; i < kind.columns.size(); ++i) {
    result += "  " + place_name(number, i) + " = " + word(kOfPart + static_cast<uint32_t>(i));
    if (kind.columns[i].in_segment) {
      result += " * " + std::to_string(kWindowBytes / 4 / element_of(text.storages()[i].type).words) + "u";
    }
    result += ";\n";
  }
  return result + "  " + text.call(kind_name(number), word(0), word(1)) + ";\n}\n";
}

KernelSource SegmentLaunch::source() const {
  FusedText fused;
  for (const Bound& bound : bound_) fused.bind("array<" + type_of(bound.element) + ">", bound.is_written);
  for (size_t i = 0; i < kinds_.size(); ++i) {
    const KernelText& text = text_of(kinds_[i]);
    const std::string row = table_name(i) + "row";
    std::string part = "var<private> " + row + ": u32;\n";
    for (size_t storage = 0; storage < kinds_[i].columns.size(); ++storage) part += load_function(i, storage);
    part += text.part(kind_name(i), accesses(i), row) + "\n" + run_function(i);
    std::string call = table_name(i) + "run(";
    for (const auto& name : builtins_of(text)) call += name + ", ";
    fused.add(text, part, std::string(KernelText::kParams) + "[" + std::to_string(i) + "u].x", call + ")");
  }
  return fused.source(text_of(kinds_.front()).workgroup_size(), kTableWords / 4);
}

void SegmentLaunch::append_to(Tape::Program& program, std::shared_ptr<Kernel> kernel) const {
  Tape::Step step{};
  step.kernel = std::move(kernel);
  step.first_binding = static_cast<uint32_t>(program.bindings.size());
  step.binding_count = static_cast<uint32_t>(bound_.size());
  step.first_word = static_cast<uint32_t>(program.words.size());
  step.param_words = vectors_ * 4;
  step.random_word = kNoWord;
  step.grid[1] = step.grid[2] = 1;
  for (const Bound& bound : bound_) program.bindings.push_back({bound.slot, 0, 0});
  program.words.resize(program.words.size() + step.param_words);
  uint32_t* words = &program.words[step.first_word];
  uint32_t row = kMostKinds;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    const Kind& kind = kinds_[i];
    uint32_t* head = words + 4 * i;
    head[1] = row;
    head[2] = static_cast<uint32_t>(kind.parts.size());
    for (const Part& part : kind.parts) {
      const auto& recorded = tape_.steps()[part.step];
      uint32_t* record = words + size_t{4} * row;
      std::copy_n(tape_.params(recorded), recorded.param_words, record);
      record += size_t{4} * param_vectors(kind);
      record[0] = step.grid[0];
      record[1] = recorded.grid[0];
      std::copy(part.places.begin(), part.places.end(), record + kOfPart);
      step.grid[0] += recorded.grid[0];
      row += record_vectors(kind);
    }
    head[0] = step.grid[0];
  }
  program.steps.push_back(std::move(step));
}

}  // namespace torch_webgpu
