"""Writes one C++ source that holds every WGSL file: embed_wgsl.py <wgsl folder> <output.cpp> [folders].

It also holds a hash of the WGSL files and of all C++ files of the folders, whose code prints and chooses kernels.

A file may begin with lines that are for this tool, and that no kernel's text shows:
    // needs: <names of files whose functions this one calls>
    // loops: <why its functions take long to compile>
"""

import hashlib
import sys
from pathlib import Path

CHUNK_CHARS = 4000  # some compilers limit the length of one string literal
DIRECTIVES = ("// needs: ", "// loops: ")

HEAD = """\
// Generated from wgsl/ by tools/embed_wgsl.py.
#include "shader/wgsl_text.h"

#include <stdexcept>
#include <string>
#include <unordered_map>

namespace torch_webgpu {
namespace {
using namespace std::string_view_literals;
"""

TAIL = """\
  };
  const auto found = files.find(name);
  if (found == files.end()) throw std::out_of_range("no WGSL file named " + std::string(name));
  return found->second;
}
"""


def literal(text: str) -> str:
    chunks = [text[i : i + CHUNK_CHARS] for i in range(0, len(text), CHUNK_CHARS)] or [""]
    return "\n".join(f'R"wgsl({chunk})wgsl"' for chunk in chunks)


def parse(text: str) -> tuple[str, list[str], bool]:
    """The text without directives, the files that it needs, whether its functions have long loops."""
    needs: list[str] = []
    loops = False
    while text.startswith(DIRECTIVES):
        line, _, text = text.partition("\n")
        if line.startswith("// needs: "):
            needs += line.removeprefix("// needs: ").split()
        else:
            loops = True
    return text, needs, loops


def source(folder: Path) -> str:
    paths = sorted(folder.rglob("*.wgsl"))
    files = {path.stem: parse(path.read_text("utf-8")) for path in paths}
    if len(files) != len(paths):
        sys.exit("embed_wgsl: two WGSL files have one name")
    if missing := {name for _, needs, _ in files.values() for name in needs} - set(files):
        sys.exit(f"embed_wgsl: no such WGSL files: {', '.join(sorted(missing))}")
    arrays, rows = [], []
    for name, (text, needs, loops) in files.items():
        if needs:
            quoted = ", ".join(f'"{needed}"sv' for needed in needs)
            arrays.append(f"constexpr std::string_view needs_{name}[] = {{{quoted}}};\n")
        array = f"needs_{name}" if needs else "{}"
        rows.append(f'      {{"{name}", {{{literal(text)}sv, {array}, {str(loops).lower()}}}}},\n')
    table = "  static const std::unordered_map<std::string_view, WgslFile> files = {\n"
    lookup = "}  // namespace\n\nconst WgslFile& wgsl_file(std::string_view name) {\n"
    return "".join([HEAD, *arrays, lookup, table, *rows, TAIL])


def kernels_hash(folders: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders for path in folder.rglob("*.*") if path.is_file()):
        digest.update(path.name.encode() + path.read_bytes())
    return f'std::string_view kernels_hash() {{ return "{digest.hexdigest()[:16]}"; }}\n}}  // namespace torch_webgpu\n'


if __name__ == "__main__":
    wgsl, output, *more = map(Path, sys.argv[1:])
    output.write_text(source(wgsl) + kernels_hash([wgsl, *more]), "utf-8")
