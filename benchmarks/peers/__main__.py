"""Measures this project beside other WebGPU programs on the same adapter, in turns in one run:
python -m benchmarks.peers [--filter TEXT] [--check]. `make peers` installs the others first."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.peers.work import WORK, Work

ROOT = Path(__file__).parents[2]
OURS, *PEERS = ("torch_webgpu", "onnxruntime", "tinygrad")
SHORT, LONG = 1, 5  # operations in a chain; the difference of their times has no transfers in it
ROUND_SECONDS = 0.05
MOST_CALLS = 200
# Results of five operations, each rounded in an order of its own.
TOLERANCE = {"rtol": 1e-3, "atol": 1e-3}


class Worker:
    """A program in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], said: Path) -> None:
        self.process, self.said = process, said

    def ask(self, do: str, **details: Any) -> dict[str, Any]:
        """Raises RuntimeError with the program's own words."""
        assert self.process.stdin and self.process.stdout
        try:
            print(json.dumps({"do": do, **details}), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"the process ended with {self.process.wait()}: {self.said.read_text()[-1000:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


@contextmanager
def started(program: str, python: Path, folder: Path) -> Iterator[Worker]:
    command = [str(python), "-m", "benchmarks.peers.programs", program]
    cache, said = str(folder / program), folder / f"{program}.txt"
    # Nothing that an earlier run left may shorten a first call.
    fresh = {"MESA_SHADER_CACHE_DIR": cache, "CACHELEVEL": "0", "XDG_CACHE_HOME": cache, "PYTHONFAULTHANDLER": "1"}
    environment = {name: value for name, value in os.environ.items() if name != "LP_NUM_THREADS"} | fresh
    pipe = subprocess.PIPE
    with (
        said.open("w") as errors,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, stdin=pipe, stdout=pipe, stderr=errors
        ) as process,
    ):
        try:
            yield Worker(process, said)
        finally:
            process.kill()


@dataclasses.dataclass
class Found:
    """What one program did with one operation. Times are milliseconds of one operation."""

    ms: float | None = None
    first_ms: float | None = None
    error: str = ""


def prepare(worker: Worker, work: Work, file: Path) -> Found:
    try:
        first_ms = worker.ask("prepare", name=work.name, lengths=[SHORT, LONG])["first_ms"]
        worker.ask("save", length=LONG, file=str(file))
    except RuntimeError as error:
        return Found(error=str(error))
    return Found(first_ms=first_ms)


def measure(workers: dict[str, Worker], work: Work, rounds: int, folder: Path) -> dict[str, Found]:
    found = {name: prepare(worker, work, folder / f"{name}.npy") for name, worker in workers.items()}
    running = [name for name in workers if not found[name].error]
    if found[OURS].error:
        raise SystemExit(f"{work.name}: {found[OURS].error}")
    ours = np.load(folder / f"{OURS}.npy")
    for name in running:
        if not np.allclose(np.load(folder / f"{name}.npy").reshape(ours.shape), ours, **TOLERANCE):
            found[name].error = "its result differs"
    running = [name for name in running if not found[name].error]
    calls = {}
    for name in running:
        once = workers[name].ask("seconds", length=LONG, calls=1)["seconds"]
        calls[name] = min(MOST_CALLS, max(1, int(ROUND_SECONDS / once)))
    times: dict[str, dict[int, list[float]]] = {name: {SHORT: [], LONG: []} for name in running}
    for _ in range(rounds):
        for name in running:
            for length in (SHORT, LONG):
                answer = workers[name].ask("seconds", length=length, calls=calls[name])
                times[name][length].append(answer["seconds"])
    for name in running:
        # The best of all rounds: whatever else the machine does only adds to a time.
        long, short = (min(times[name][length]) for length in (LONG, SHORT))
        found[name].ms = 1e3 * (long - short) / (LONG - SHORT)
        if found[name].ms <= 0:
            found[name].error, found[name].ms = "too fast to be told from the transfers", None
    return found


def ratio(found: dict[str, Found], peer: str) -> float | None:
    ours, theirs = found[OURS].ms, found[peer].ms
    return theirs / ours if ours and theirs else None


def table_of(results: list[tuple[Work, dict[str, Found]]]) -> Table:
    table = Table("operation", f"{OURS} ms", "first ms", "bar")
    for peer in PEERS:
        for title in (f"{peer} ms", "first ms", "slower by"):
            table.add_column(title, justify="right")
    for work, found in results:
        cells = [work.name, number(found[OURS].ms), number(found[OURS].first_ms), f"≥ {work.bar:g}"]
        for peer in PEERS:
            times = ratio(found, peer)
            style = "green" if times and times >= work.bar else "bold red"
            cells += [number(found[peer].ms), number(found[peer].first_ms)]
            cells.append(f"[{style}]{times:.1f} x[/]" if times else "")
        table.add_row(*cells)
    return table


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def draw(results: list[tuple[Work, dict[str, Found]]], about: dict[str, Any], file: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 0.5 * len(results) + 1.5), layout="constrained")
    places = np.arange(len(results))
    for i, peer in enumerate(PEERS):
        times = [ratio(found, peer) or 0 for _, found in results]
        bars = axes.barh(places + (0.5 - i) * 0.4, times, 0.4, label=peer)
        axes.bar_label(bars, [f"{t:.1f}" if t else "does not run" for t in times], padding=3, fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel=f"time of one operation, in times of {OURS}'s", yticks=places)
    axes.set_yticklabels([work.name for work, _ in results])
    axes.invert_yaxis()
    axes.set_title(about["programs"][OURS], fontsize=9)
    axes.legend()
    figure.savefig(file, dpi=120)


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--filter", default="", help="only operations with this in their name")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--python", type=Path, default=ROOT / ".venv-peers/bin/python", help="of the other programs")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results", help="a folder for JSON and chart")
    parser.add_argument("--check", action="store_true", help="exit with 1 if an operation misses its bar")
    options = parser.parse_args()
    if not options.python.exists():
        parser.error(f"{options.python} does not exist: `make peers` makes it")
    options.work = [work for work in WORK if options.filter.lower() in work.name.lower()]
    if not options.work:
        parser.error("--filter matches none of:\n  " + "\n  ".join(work.name for work in WORK))
    return options


def main() -> None:
    options = options_of()
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    results: list[tuple[Work, dict[str, Found]]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peers-")))
        pythons = {OURS: Path(sys.executable)} | dict.fromkeys(PEERS, options.python)
        workers = {name: stack.enter_context(started(name, python, folder)) for name, python in pythons.items()}
        about: dict[str, Any] = {
            "programs": {name: worker.ask("describe")["text"] for name, worker in workers.items()},
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
        }
        for work in options.work:
            with console.status(work.name):
                results.append((work, measure(workers, work, options.rounds, folder)))
    console.print(table_of(results))
    for name, text in about["programs"].items():
        console.print(f"{name}: {text}", markup=False)
    for work, found in results:
        for name, one in found.items():
            if one.error:
                console.print(f"{work.name}: {name}: {one.error}", markup=False)
    rows = [
        {"name": work.name, "bar": work.bar, **{name: dataclasses.asdict(one) for name, one in found.items()}}
        for work, found in results
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "peers.json").write_text(json.dumps({**about, "rows": rows}, indent=2) + "\n")
    draw(results, about, options.out / "peers.png")
    console.print(f"written to {options.out}: peers.json, peers.png")
    missed = [work.name for work, found in results for peer in PEERS if (ratio(found, peer) or work.bar) < work.bar]
    if options.check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
