"""One line of the benchmark table: what is measured, under which environment, and the bar it has to meet."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


class Verdict(enum.Enum):
    PASS = "PASS"
    FAIL = "FAIL"
    REPORTED = "reported"  # there is no bar
    FALLBACK = "fallback"  # the CPU did part of the work: no verdict
    MISSING = "missing"  # the op does not run at all yet: no verdict
    ERROR = "ERROR"  # a wrong result, a crash or no answer

    @property
    def is_bad(self) -> bool:
        return self in (Verdict.FAIL, Verdict.ERROR)


@dataclass(frozen=True)
class Bar:
    limit: float
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


@dataclass
class Result:
    """What a worker found. Times are in milliseconds; the value is in the row's unit."""

    value: float | None = None
    cpu_ms: float | None = None
    device_ms: float | None = None
    first_call_ms: float | None = None
    fallbacks: list[str] = field(default_factory=list)
    missing: str = ""
    error: str = ""
    adapter: str = ""
    runtime: str = ""


@dataclass(frozen=True)
class Row:
    name: str
    section: str
    unit: str
    bar: Bar | None
    measure: Callable[[int], Result]
    environment: Mapping[str, str] = field(default_factory=dict)

    def verdict(self, result: Result) -> Verdict:
        if result.error:
            return Verdict.ERROR
        if result.missing:
            return Verdict.MISSING
        if result.fallbacks:
            return Verdict.FALLBACK
        if self.bar is None:
            return Verdict.REPORTED
        if result.value is None:
            return Verdict.ERROR
        return Verdict.PASS if self.bar.met_by(result.value) else Verdict.FAIL
