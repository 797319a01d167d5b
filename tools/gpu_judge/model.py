"""A time for a launch by what limits it most: a model that knows no cache misses, no conflicts and no overlap."""

import math
from dataclasses import dataclass

from tools.gpu_judge.assembly import Counts, Loop, loops_of, wave_of

LDS_BYTES, CACHE_BYTES, SHARED_CACHE_BYTES = 128, 128, 32  # per clock and unit


@dataclass(frozen=True)
class Card:
    name: str
    units: int
    ghz: float
    gbps: float


# By the name that the driver has for the chip.
CARDS = {
    "NAVI31": Card("RX 7900 XTX", 96, 2.4, 960),
    "NAVI33": Card("RX 7600", 32, 2.6, 288),
    "NAVI21": Card("RX 6900 XT", 80, 2.25, 512),
    "NAVI10": Card("RX 5700 XT", 40, 1.9, 448),
}


@dataclass(frozen=True)
class Compiled:
    text: str
    statistics: dict[str, int]


@dataclass(frozen=True)
class Launch:
    label: str
    wgsl: str
    grid: tuple[int, int, int]
    lanes: int  # of a workgroup


@dataclass(frozen=True)
class Work:
    """What a launch is asked to do, and how often its loops run where that is not in the text: those in order."""

    fma: float = 0
    bytes: float = 0
    trips: tuple[float, ...] = ()


@dataclass(frozen=True)
class Verdict:
    launch: Launch
    work: Work
    statistics: dict[str, int]
    hot: Counts  # the loop with most of the work, one iteration
    hot_trips: float
    fma_share: float  # of the clocks of the vector units in the hot loop
    waves: int  # that a unit holds
    limit: str
    us: float
    ideal_us: float
    exact: bool  # the trips were told, not guessed

    @property
    def share(self) -> float:
        return self.ideal_us / self.us if self.us else 1.0

    @property
    def spills(self) -> int:
        return sum(self.statistics[name] for name in ("Spilled SGPRs", "Spilled VGPRs", "Scratch size"))

    @property
    def lds_per_fma(self) -> float:
        return self.hot.lds / max(1, self.hot.fma)


def _clocks(counts: Counts, wave: int, held: float) -> dict[str, float]:
    cached = counts.load_bytes + counts.store_bytes - counts.uncached_bytes
    return {
        "vector": counts.vector_clocks * wave / 64,
        "scalar": counts.scalar / 2,
        "LDS": counts.lds_bytes * wave / LDS_BYTES,
        "cache": cached * wave / CACHE_BYTES,
        "L2": counts.uncached_bytes * wave / SHARED_CACHE_BYTES,
        "latency": counts.alone / held,
    }


def ideal_us(work: Work, card: Card) -> float:
    """What multiply-adds, or bytes, take at least."""
    return max(work.bytes / card.gbps / 1e3, work.fma / (card.units * 64 * card.ghz * 1e3))


def judge(launch: Launch, compiled: Compiled, work: Work, card: Card) -> Verdict:
    wave, stats = wave_of(compiled.text), compiled.statistics
    groups = math.prod(launch.grid)
    waves_of_group = -(-launch.lanes // wave)
    units = min(card.units, groups)
    holds = 2 * stats["Subgroups per SIMD"]
    if stats["LDS size"]:
        holds = min(holds, 65536 // stats["LDS size"] * waves_of_group)
    held = max(1.0, min(holds, groups * waves_of_group / units))  # on average

    loops = loops_of(compiled.text)
    exact = _set_trips(loops, work, groups * launch.lanes)
    clocks: dict[str, float] = {}
    for loop in loops:
        for name, value in _clocks(loop.counts, wave, held).items():
            clocks[name] = clocks.get(name, 0) + value * loop.total_trips()
    microseconds = {name: value * groups * waves_of_group / units / card.ghz / 1e3 for name, value in clocks.items()}
    microseconds["memory"] = work.bytes / card.gbps / 1e3
    limit = max(microseconds, key=lambda name: microseconds[name])
    hot = _hot(loops, work)
    return Verdict(
        launch, work, stats, hot.counts, hot.total_trips(), hot.counts.fma / max(1, hot.counts.vector_clocks), holds,
        limit, microseconds[limit], ideal_us(work, card), exact,
    )  # fmt: skip


def _hot(loops: list[Loop], work: Work) -> Loop:
    return max(loops, key=lambda x: (x.counts.fma if work.fma else 0, x.counts.load_bytes, x.counts.store_bytes))


def _set_trips(loops: list[Loop], work: Work, lanes: int) -> bool:
    """Gives every loop its trips. Where nobody tells, the hot loop does all the work and the others run once."""
    told = list(work.trips)
    unknown = [loop for loop in loops if loop.trips is None]
    for loop in unknown:
        loop.trips = told.pop(0) if told else 1.0
    guessed = unknown[len(work.trips) :]
    hot = _hot(loops, work)
    around: Loop | None = hot
    while around is not None and around not in guessed:
        around = around.parent
    if around is not None:
        each = hot.counts.fma if work.fma else hot.counts.load_bytes or hot.counts.store_bytes
        around.trips = max(1.0, (work.fma or work.bytes) / lanes / max(1, each) / hot.total_trips())
    return not guessed and not told
