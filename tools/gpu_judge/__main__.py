"""python -m tools.gpu_judge [WORKLOAD...]: a table of what the compiler makes of the kernels of each workload."""

import argparse
import re
import sys
from pathlib import Path

from tools.gpu_judge.capture import compile_for, launches_of, missing
from tools.gpu_judge.model import CARDS, Verdict, judge
from tools.gpu_judge.workloads import TABLE

HEAD = (
    "workload", "kernel", "grid", "lanes", "VGPRs", "LDS", "waves", "loop", "trips", "vector", "FMA", "FMA share",
    "LDS/FMA", "loads", "limit", "us", "best", "share", "notes",
)  # fmt: skip


def row_of(name: str, v: Verdict) -> tuple[str, ...]:
    loads = " ".join(f"{count}x{width}B" for width, count in sorted(v.hot.loads.items()))
    notes = [f"spills {v.spills}"] * bool(v.spills) + ["trips guessed"] * (not v.exact)
    notes += [f"{v.hot.uncached} loads bypass the cache"] * bool(v.hot.uncached)
    return (
        name, v.launch.label, "x".join(str(n) for n in v.launch.grid), str(v.launch.lanes), str(v.statistics["VGPRs"]),
        str(v.statistics["LDS size"]), str(v.waves), str(v.hot.instructions), f"{v.hot_trips:.0f}", str(v.hot.vector),
        str(v.hot.fma), f"{v.fma_share:.0%}", f"{v.lds_per_fma:.3f}", loads, v.limit, f"{v.us:.1f}",
        f"{v.ideal_us:.1f}", f"{v.share:.0%}", ", ".join(notes),
    )  # fmt: skip


def verdicts(names: list[str], chip: str, variables: dict[str, str] | None = None) -> dict[str, list[Verdict]]:
    """Of the launches of each workload."""
    launches = launches_of(names, variables)
    every = [(name, launch) for name in names for launch in launches[name]]
    texts = list(dict.fromkeys(launch.wgsl for _, launch in every))
    compiled = dict(zip(texts, compile_for(chip, texts), strict=True))
    found: dict[str, list[Verdict]] = {name: [] for name in names}
    for name in names:
        works = TABLE[name].work(launches[name])
        for launch, work in zip(launches[name], works, strict=True):
            found[name].append(judge(launch, compiled[launch.wgsl], work, CARDS[chip]))
    return found


def save_texts(folder: Path, names: list[str], chip: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, launches in launches_of(names).items():
        for i, (launch, made) in enumerate(zip(launches, compile_for(chip, [x.wgsl for x in launches]), strict=True)):
            (folder / f"{name}.{i}.wgsl").write_text(launch.wgsl)
            (folder / f"{name}.{i}.isa").write_text(made.text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.gpu_judge", description=__doc__)
    parser.add_argument("workload", nargs="*", help="a regular expression of names; all of them where none is given")
    parser.add_argument("--chip", default="NAVI31", choices=CARDS, help="whose compiler and limits")
    parser.add_argument("--list", action="store_true", help="name the workloads")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write texts and machine code there instead")
    options = parser.parse_args()
    names = [n for n in TABLE if not options.workload or any(re.search(w, n) for w in options.workload)]
    if options.list:
        print("\n".join(names))
        return
    if why := missing():
        sys.exit(f"cannot judge: {why}")
    if options.save:
        save_texts(options.save, names, options.chip)
        return
    found = verdicts(names, options.chip)
    table = [HEAD, *(row_of(name, v) for name in names for v in found[name])]
    widths = [max(len(row[i]) for row in table) for i in range(len(HEAD))]
    for row in table:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
