"""Runs the benchmark table, each row in a process of its own: python -m benchmarks [--filter TEXT] [--check] ..."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.row import Result, Row, Verdict
from benchmarks.worker import ROWS

ROOT = Path(__file__).parents[1]
SECONDS = 900  # of one row: LLVM may take ten for a kernel, a hang takes for ever

# What would change the measurement, unless the row sets it.
CLEARED = (
    *("LP_NUM_THREADS", "TORCH_DEVICE_BACKEND_AUTOLOAD"),
    *("TORCH_WEBGPU_FALLBACK", "TORCH_WEBGPU_SYNC", "TORCH_WEBGPU_PIN"),
)

STYLES = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.ERROR: "bold red"}


def run(row: Row, rounds: int) -> Result:
    """The row's result from a fresh process, whose first call compiles: it gets an empty shader cache."""
    base = {name: value for name, value in os.environ.items() if name not in CLEARED}
    with tempfile.TemporaryDirectory(prefix="bench-shaders-") as cache:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.worker", row.name, str(rounds)],
                env=base | {"MESA_SHADER_CACHE_DIR": cache} | dict(row.environment),
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return Result(error=f"no answer within {SECONDS} s")
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        said = done.stderr.strip().splitlines()
        return Result(error=f"exit code {done.returncode}: {said[-1] if said else 'no output'}")
    return Result(**json.loads(lines[-1]))


def number(value: float | None, unit: str = "") -> str:
    if value is None:
        return ""
    text = f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"
    return f"{text} {unit}".rstrip()


def bar_text(row: Row) -> str:
    if row.bar is None:
        return ""
    return f"{'≥' if row.bar.at_least else '≤'} {row.bar.limit:g}"


def table_of(section: str, results: list[tuple[Row, Result]]) -> Table:
    """One section's rows; the columns of times only where there are any."""
    times = any(result.first_call_ms is not None for _, result in results)
    table = Table(section, "measured", "bar", "verdict", *(("CPU ms", "webgpu ms", "first ms") if times else ()))
    for column in table.columns[1:]:
        column.justify = "left" if column.header == "verdict" else "right"
        column.no_wrap = True
    for row, result in results:
        verdict = row.verdict(result)
        cells = [row.name, number(result.value, row.unit), bar_text(row)]
        cells.append(f"[{STYLES.get(verdict, 'yellow')}]{verdict.value}[/]")
        if times:
            cells += map(number, (result.cpu_ms, result.device_ms, result.first_call_ms))
        table.add_row(*cells)
    return table


def notes_of(results: list[tuple[Row, Result]]) -> list[str]:
    """What a verdict alone does not tell."""
    notes = []
    for row, result in results:
        if result.error or result.missing:
            notes.append(f"{row.name}: {result.error or result.missing}")
        elif result.fallbacks:
            notes.append(f"{row.name}: on the CPU: {', '.join(result.fallbacks)}")
    return notes


def as_json(results: list[tuple[Row, Result]], rounds: int) -> str:
    rows = [
        {
            "name": row.name,
            "section": row.section,
            "environment": dict(row.environment),
            "unit": row.unit,
            "bar": row.bar and dataclasses.asdict(row.bar),
            "verdict": row.verdict(result).value,
            **dataclasses.asdict(result),
        }
        for row, result in results
    ]
    about = {"torch": torch.__version__, "cores": os.cpu_count(), "load": os.getloadavg()[0], "rounds": rounds}
    return json.dumps({**about, "rows": rows}, indent=2) + "\n"


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--filter", action="append", default=[], help="only rows with this in their name; may repeat")
    parser.add_argument("--rounds", type=int, default=15, help="per measurement; the best or the median of them counts")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "bench.json", help="where to write the results")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a row misses its bar or goes wrong")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    wanted = [text.lower() for text in options.filter]
    options.rows = [row for row in ROWS if not wanted or any(text in row.name.lower() for text in wanted)]
    if not options.rows:
        parser.error("--filter matches none of:\n  " + "\n  ".join(row.name for row in ROWS))
    return options


def main() -> None:
    options = options_of()
    if not torch.webgpu.is_available():
        sys.exit(f"benchmarks: {torch.webgpu.unavailable_reason()}")
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    results: list[tuple[Row, Result]] = []
    columns = (TextColumn("{task.description:<40}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=len(options.rows))
        for row in options.rows:
            progress.update(bar, description=row.name)
            results.append((row, run(row, options.rounds)))
            progress.advance(bar)

    for section in dict.fromkeys(row.section for row, _ in results):
        console.print(table_of(section, [(row, result) for row, result in results if row.section == section]))
    if not options.filter:
        counts = [sys.executable, "-m", "benchmarks.dispatches"]
        console.print(subprocess.run(counts, cwd=ROOT, capture_output=True, text=True).stdout, markup=False)
    for adapter in sorted({f"{result.adapter} through {result.runtime}" for _, result in results if result.adapter}):
        console.print(f"on {adapter}")
    for note in notes_of(results):
        console.print(note, markup=False)
    if os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1):
        console.print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): times mean little", style="yellow")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(as_json(results, options.rounds))
    if options.check and any(row.verdict(result).is_bad for row, result in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
