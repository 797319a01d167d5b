"""Writes docs/ops.md: every OpInfo of PyTorch by dtype, and every ATen operator that has a kernel of its own.

Each op is run on the device with its first samples and asked whether anything reached the CPU, so the table says what
the registrations do, not what somebody meant them to. `python -m tools.op_table [--only PATTERN] [--samples N]`
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

import torch

from tests.ops import coverage
from tests.support import DTYPES, name_of

TARGET = Path(__file__).parents[1] / "docs" / "ops.md"
MARKS = {"native": "native", "fallback": "fallback", "none": "", "wrong": "differs", "error": "error"}


def registered() -> list[str]:
    """The ATen operators with a kernel for the device, without the autograd formulas around them."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    return sorted({name.removeprefix("aten::") for name in names if name.startswith("aten::")})


def table_of(answers: dict[str, dict[str, str]]) -> list[str]:
    names = sorted({op for by_op in answers.values() for op in by_op}, key=str.lower)
    lines = [f"| op | {' | '.join(answers)} |", f"|---|{'---|' * len(answers)}"]
    for op in names:
        lines.append(
            f"| `{op}` | {' | '.join(MARKS.get(by_op.get(op, 'none'), 'error') for by_op in answers.values())} |"
        )
    return lines


def summary_of(answers: dict[str, dict[str, str]]) -> list[str]:
    lines = ["| dtype | OpInfos | native | fallback | other |", "|---|---|---|---|---|"]
    for dtype, by_op in answers.items():
        counts = Counter(by_op.values())
        tried = sum(counts.values()) - counts["none"]
        other = tried - counts["native"] - counts["fallback"]
        share = 100 * counts["native"] / max(tried, 1)
        lines.append(f"| {dtype} | {tried} | {counts['native']} ({share:.0f} %) | {counts['fallback']} | {other} |")
    return lines


def operators_of(names: list[str]) -> list[str]:
    """One line per operator, its overloads behind it."""
    overloads: dict[str, list[str]] = {}
    for name in names:
        base, _, overload = name.partition(".")
        overloads.setdefault(base, []).append(overload)
    return [
        f"- `{base}`" + (f": {', '.join(o or 'default' for o in found)}" if found != [""] else "")
        for base, found in overloads.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a pattern of OpInfo names")
    parser.add_argument("--samples", type=int, default=3, help="of each op and dtype that are tried")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    answers: dict[str, dict[str, str]] = {}
    for dtype in map(name_of, DTYPES):
        names = coverage.names_of(dtype, options.only)
        found = coverage.run(names, dtype, backward=False, jobs=options.jobs, limit=60, samples=options.samples)
        answers[dtype] = {op: kind for op, (kind, _) in found.items()}
    operators = registered()
    text = [
        "# Operations by dtype",
        "",
        f"Written by `make op-table`: PyTorch's own OpInfos, forward, {options.samples} sample(s) of each.",
        "*native*: all of the work ran on the device. *fallback*: right, with part of it on the CPU.",
        "*differs*: further from the CPU's result than `tests/ops/native_ops.py` allows. *error*: refused.",
        "Empty: not for that dtype on the CPU, or no sample that the device can hold.",
        "float64, complex, float8 and the wider unsigned integers are stored, moved, cast and compared on the device,",
        "and have no columns: all other arithmetic on them is a counted fallback.",
        "",
        *summary_of(answers),
        "",
        *table_of(answers),
        "",
        f"## The {len(operators)} ATen operators with a kernel",
        "",
        *operators_of(operators),
    ]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(text) + "\n")
    print(f"{TARGET.name}: {len(operators)} operators; " + re.sub(r"\s*\|\s*", " ", "; ".join(summary_of(answers)[2:])))


if __name__ == "__main__":
    main()
