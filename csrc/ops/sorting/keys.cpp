#include "ops/sorting/keys.h"

namespace torch_webgpu {
namespace {

constexpr Program group_program(const char* text) {
  return make_grouped(make_program("sort", "sort_group", "T:input u:chosen T:values! i:indices!",
                                   "length inner width size first taken", text, "sort_key"));
}

constexpr const char* kRadixParams = "total length blocks shift bits";
constexpr Program radix_program(const char* file, const char* operands, const char* params, const char* text) {
  return make_grouped(make_program("sort", file, operands, params, text, "sort_key"), kRadixLanes);
}

constexpr KeyRow key_row(const char* text) {
  return {
      make_program("sort", "sort_keys", "T:input u:keys!", "length inner", text, "sort_key"),
      make_program("topk", "topk", "T:input u:keys! u:indices!", "length inner blocks span taken", text, "sort_key"),
      make_program("sort", "sort_short", "T:input T:values! i:indices!", "length inner first taken", text, "sort_key"),
      group_program(text),
      make_grouped(group_program(text), kRadixLanes),
      make_program("sort", "sort_merge", "T:input u:chosen u:order! u:next! T:values! i:indices!",
                   "length inner width blocks span sorted first taken", text, "sort_key"),
      radix_program("topk_select", "T:input u:chosen u:next!", "length inner width blocks taken skipped", text),
      radix_program("sort_varied", "T:input a:varied!", "total", text),
      radix_program("sort_count", "T:input u:room u:varied u:counts!", kRadixParams, text),
      radix_program("sort_offsets", "T:input u:room u:varied u:counts! u:totals!", kRadixParams, text),
      radix_program("sort_move", "T:input u:room! u:varied u:counts u:totals T:values! i:indices! u:order!",
                    "total length blocks shift bits first taken", text)};
}

// Of elements that compute in one word: the key, and the element as it is kept while it is moved.
#define WORD_KEY(key)                                                         \
  "fn key(a: T) -> vec2<u32> { return vec2<u32>(" key                         \
  ", 0u); }"                                                                  \
  "fn words_of(a: T) -> vec2<u32> { return vec2<u32>(bitcast<u32>(a), 0u); }" \
  "fn value_of(words: vec2<u32>) -> T { return bitcast<T>(words.x); }"

constexpr KeyRow kFloatKeys = key_row(WORD_KEY("float_key(a)"));
constexpr KeyRow kHalfKeys = key_row(WORD_KEY("half_key(a)"));
constexpr KeyRow kBFloatKeys = key_row(WORD_KEY("float_key(a) >> 16u"));
constexpr KeyRow kLongKeys = key_row(
    "fn key(a: T) -> vec2<u32> { return vec2<u32>(a.x, a.y ^ 0x80000000u); }"
    "fn words_of(a: T) -> vec2<u32> { return a; }"
    "fn value_of(words: vec2<u32>) -> T { return words; }");
constexpr KeyRow kIntKeys = key_row(WORD_KEY("bitcast<u32>(a) ^ 0x80000000u"));
constexpr KeyRow kShortKeys = key_row(WORD_KEY("u32(a + 32768)"));
constexpr KeyRow kCharKeys = key_row(WORD_KEY("u32(a + 128)"));
constexpr KeyRow kByteKeys = key_row(WORD_KEY("u32(a)"));

}  // namespace

const KeyRow& key_row_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf: return kHalfKeys;
    case at::kBFloat16: return kBFloatKeys;
    case at::kLong: return kLongKeys;
    case at::kInt: return kIntKeys;
    case at::kShort: return kShortKeys;
    case at::kChar: return kCharKeys;
    case at::kByte:
    case at::kBool: return kByteKeys;
    default: return kFloatKeys;
  }
}

}  // namespace torch_webgpu
