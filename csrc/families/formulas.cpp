#include "families/formulas.h"

namespace torch_webgpu {
namespace {

// Filled by static initialisers, whose order is open.
std::deque<ListedFormula>& list() {
  static auto* formulas = new std::deque<ListedFormula>;
  return *formulas;
}

}  // namespace

void list_formula(const char* op, const PointwiseRow& row) { list().push_back({op, &row}); }
const std::deque<ListedFormula>& listed_formulas() { return list(); }

}  // namespace torch_webgpu
