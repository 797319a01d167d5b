"""The text of a kernel for AMD GPUs: its loops, and what one iteration of each asks of a compute unit."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_NO_WORK = re.compile(r"s_(delay_alu|nop|clause|endpgm|code_end|sendmsg|waitcnt_depctr|set_inst)")
_QUARTER_RATE = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_|v_mul_(lo|hi)_[ui]32|v_mad_(co_)?u64")
_FMA = re.compile(r"v_(dual_)?(pk_)?(fma|fmac|fmamk|fmaak|mac|mad)_(mix\w*_)?(f32|f16)|v_fma_mix|v_dot2")
_WIDTHS = {"b128": 16, "x4": 16, "b96": 12, "x3": 12, "b64": 8, "x2": 8, "b16": 2, "u16": 2, "i16": 2, "u8": 1, "i8": 1}
_STEP = re.compile(r"[vs]_add_(nc_)?[ui]32|s_addk_i32")
_BOUND = re.compile(r"[vs]_cmp[xk]?_\w+_[ui]32|s_cmpk_\w+")


MEMORY_LATENCY, LDS_LATENCY = 500, 60  # clocks


@dataclass(frozen=True)
class Instruction:
    op: str
    operands: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Of one lane, loaded or stored."""
        width = next((size for text, size in _WIDTHS.items() if text in self.op), 4)
        return width * (2 if "2addr" in self.op else 1)

    @property
    def constants(self) -> list[int]:
        return [int(x, 0) for x in self.operands if re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", x)]


@dataclass
class Counts:
    """What instructions ask for, of a wave."""

    instructions: int = 0
    vector: int = 0
    vector_clocks: int = 0  # of a unit that works on as many lanes as the wave has
    fma: int = 0
    scalar: int = 0
    lds: int = 0
    lds_bytes: int = 0  # of a lane
    loads: dict[int, int] = field(default_factory=dict)  # by width
    uncached: int = 0  # loads that bypass the unit's own cache
    load_bytes: int = 0
    store_bytes: int = 0
    uncached_bytes: int = 0
    alone: float = 0  # clocks of a wave that has the machine to itself: issue, and waits for loads

    def add(self, i: Instruction) -> None:
        if _NO_WORK.match(i.op):
            return
        self.instructions += 1
        if i.op.startswith("v_"):
            self.vector += 1
            self.vector_clocks += 4 if _QUARTER_RATE.match(i.op) else 1
            parts = [i.op, *(x.split()[1] for x in i.operands if x.startswith("::"))]
            self.fma += sum((2 if "pk_" in p or "dot2" in p else 1) for p in parts if _FMA.match(p))
        elif i.op.startswith("s_"):
            self.scalar += 1
        elif i.op.startswith("ds_"):
            self.lds += 1
            self.lds_bytes += i.bytes
        elif "load" in i.op:
            self.loads[i.bytes] = self.loads.get(i.bytes, 0) + 1
            self.load_bytes += i.bytes
            if any(x.split()[-1:] == ["glc"] or " glc" in x for x in i.operands):
                self.uncached += 1
                self.uncached_bytes += i.bytes
        elif "store" in i.op:
            self.store_bytes += i.bytes
        elif "atomic" in i.op:
            self.uncached_bytes += i.bytes


@dataclass
class Loop:
    """Blocks first to last; the outermost one is the whole kernel, once."""

    first: int
    last: int
    parent: "Loop | None" = None
    trips: float | None = None  # None: the text does not tell
    counts: Counts = field(default_factory=Counts)  # without those of inner loops

    def is_inside(self, other: "Loop") -> bool:
        return self is other or (self.parent is not None and self.parent.is_inside(other))

    def total_trips(self) -> float:
        return (self.trips or 0) * (self.parent.total_trips() if self.parent else 1)


def _blocks(text: str) -> Iterator[tuple[str, list[Instruction]]]:
    current: list[Instruction] = []
    for line in text.splitlines():
        code = line.split(";")[0].strip()
        if re.fullmatch(r"BB\d+:", code):
            current = []
            yield code[:-1], current
        elif re.match(r"[a-z]+_", code):
            op, _, rest = code.partition(" ")
            rest = rest.replace(" ::", ", ::")
            current.append(Instruction(op, tuple(x.strip() for x in rest.split(",") if x.strip())))


def _clocks_alone(code: list[Instruction], wave: int) -> float:
    """Of the second of two passes: in the first nothing is under way when it begins."""
    clock = 0.0
    under_way: dict[str, list[float]] = {"vmcnt": [], "lgkmcnt": []}
    begin = 0.0
    for _ in range(2):
        begin = clock
        for i in code:
            if i.op.startswith("s_waitcnt"):
                for kind, left in re.findall(r"(vmcnt|lgkmcnt)\((\d+)\)", " ".join(i.operands)):
                    while len(under_way[kind]) > int(left):
                        clock = max(clock, under_way[kind].pop(0))
            elif not _NO_WORK.match(i.op):
                slow = 4 if _QUARTER_RATE.match(i.op) else 1
                clock += slow * wave / 32 if i.op.startswith("v_") else 1
                if i.op.startswith(("ds_", "s_load", "s_buffer_load")):
                    under_way["lgkmcnt"].append(clock + LDS_LATENCY)
                elif "load" in i.op or ("atomic" in i.op and "glc" in i.operands):
                    under_way["vmcnt"].append(clock + MEMORY_LATENCY)
    return clock - begin


def _constant_trips(own: list[Instruction], head: list[Instruction]) -> float | None:
    """Of loops such as `for (i = lane; i < 512; i += 64)`: a register is compared with a constant and steps by one."""
    bounds = {name: i.constants[0] for i in head if _BOUND.match(i.op) and i.constants for name in i.operands}
    for i in own:
        if _STEP.match(i.op) and i.constants and i.operands[0] in bounds and bounds[i.operands[0]] > 0:
            step = i.constants[0]
            if step > 0 and bounds[i.operands[0]] <= 1 << 16:
                return max(1.0, bounds[i.operands[0]] / step)
    return None


def loops_of(text: str) -> list[Loop]:
    """The kernel itself, then its loops in the order of the text."""
    blocks = [(name, code) for name, code in _blocks(text)]
    place = {name: index for index, (name, _) in enumerate(blocks)}
    ends: dict[int, int] = {}
    for index, (_, code) in enumerate(blocks):
        for i in code:
            target = place.get(i.operands[-1], index + 1) if i.operands and "branch" in i.op else index + 1
            if target <= index:
                ends[target] = max(index, ends.get(target, 0))
    loops = [Loop(0, len(blocks) - 1, None, 1)]
    for first, last in sorted(ends.items()):
        around = [loop for loop in loops if loop.first <= first and last <= loop.last]
        loops.append(Loop(first, last, around[-1]))
    own: dict[int, list[Instruction]] = {index: [] for index in range(len(loops))}
    for index, (_, code) in enumerate(blocks):
        inner = max(n for n, loop in enumerate(loops) if loop.first <= index <= loop.last)
        own[inner] += code
    for n, loop in enumerate(loops):
        for i in own[n]:
            loop.counts.add(i)
        loop.counts.alone = _clocks_alone(own[n], wave_of(text))
        if n > 0:
            head = [i for _, code in blocks[loop.first : loop.first + 3] for i in code]
            loop.trips = _constant_trips(own[n], head)
    return loops


def wave_of(text: str) -> int:
    return 32 if "exec_lo" in text else 64
