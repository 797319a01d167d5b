"""Writes one C++ source that holds every WGSL file: embed_wgsl.py <wgsl folder> <output.cpp>."""

import sys
from pathlib import Path

CHUNK_CHARS = 4000  # some compilers limit the length of one string literal


def literal(text: str) -> str:
    chunks = [text[i : i + CHUNK_CHARS] for i in range(0, len(text), CHUNK_CHARS)] or [""]
    return "\n".join(f'R"wgsl({chunk})wgsl"' for chunk in chunks)


def source(folder: Path) -> str:
    files = sorted(folder.rglob("*.wgsl"))
    rows = [
        f'    {{"{file.relative_to(folder).with_suffix("").as_posix()}", {literal(file.read_text("utf-8"))}sv}},'
        for file in files
    ]
    return "\n".join(
        [
            "// Generated from wgsl/ by tools/embed_wgsl.py.",
            '#include "shader/wgsl_text.h"',
            "",
            "#include <stdexcept>",
            "#include <string>",
            "#include <unordered_map>",
            "",
            "namespace torch_webgpu {",
            "std::string_view wgsl_text(std::string_view name) {",
            "  using namespace std::string_view_literals;",
            "  static const std::unordered_map<std::string_view, std::string_view> texts = {",
            *rows,
            "  };",
            "  const auto found = texts.find(name);",
            '  if (found == texts.end()) throw std::out_of_range("no WGSL file named " + std::string(name));',
            "  return found->second;",
            "}",
            "}  // namespace torch_webgpu",
            "",
        ]
    )


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(source(Path(sys.argv[1])), "utf-8")
