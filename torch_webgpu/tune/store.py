"""What was measured, on disk: a file for each adapter with its driver, runtime and the texts of the kernels."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from torch_webgpu import _C

_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Choice:
    launch: str  # its family and operands, to be read
    number: int  # of the kernel
    times_ms: dict[str, float]  # by the kernels' names

    @staticmethod
    def read(value: Any) -> Choice:
        times = {str(name): float(ms) for name, ms in value["times_ms"].items()}
        return Choice(str(value["launch"]), int(value["number"]), times)


def folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "torch_webgpu" / "tuning"


def identity() -> dict[str, Any]:
    """Other times are to be expected where one of these differs.

    Called while the device is opened: _C.target() may not be asked yet.
    """
    properties = _C.device_properties()
    names = ("name", "vendor", "architecture", "driver", "backend", "type", "runtime", "subgroup_sizes", "features")
    chosen = {name: os.environ.get(f"TORCH_WEBGPU_{name}", "") for name in ("TARGET", "LIMITS")}
    known = {name: properties[name] for name in names} | chosen | {"kernels": _C.kernels_hash()}
    return json.loads(json.dumps(known, default=str))  # as it comes from a file


class Store:
    """The file's contents, and changes to it. It belongs to one process at a time: see lock()."""

    def __init__(self) -> None:
        self.identity = identity()
        digest = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:16]
        name = re.sub(r"[^a-z0-9]+", "-", str(self.identity["name"]).lower()).strip("-")
        self.path = folder() / f"{name}-{digest}.json"
        self.choices: dict[int, Choice] = {}
        self.failed: dict[str, str] = {}  # why a kernel is never tried again, by family and name
        self._tried: str | None = None
        self._is_locked = self._has_warned = False
        self._load()

    def _read(self) -> tuple[dict[int, Choice], dict[str, str], str | None]:
        """What the file holds: choices, what failed, and what is being tried."""
        try:
            found = json.loads(self.path.read_text("utf-8"))
            if found["version"] != _VERSION or found["identity"] != self.identity:
                raise ValueError("it was written for something else")
            choices = {int(key, 16): Choice.read(value) for key, value in found["choices"].items()}
            return choices, {str(k): str(v) for k, v in found["failed"].items()}, found["tried"]
        except FileNotFoundError:
            pass
        except OSError as error:
            self._warn(f"cannot be read and is ignored: {error}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._warn(f"is broken and is ignored: {error!r}")
        return {}, {}, None

    def _load(self) -> None:
        self.choices, self.failed, tried = self._read()
        if tried is not None:
            with self.lock() as is_mine:
                if is_mine:  # whoever tried it did not live to say what came of it
                    self.failed[str(tried)] = "it ended the process"

    def _warn(self, what: str) -> None:
        if not self._has_warned:
            warnings.warn(f"webgpu: the file of tuned kernels {self.path} {what}", stacklevel=3)
        self._has_warned = True

    @contextlib.contextmanager
    def lock(self) -> Iterator[bool]:
        """Whether this process may tune: one at a time does."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(f"{self.path}.lock")
            lock.acquire(blocking=False)
        except Timeout:
            yield False
            return
        except OSError as error:
            self._warn(f"cannot be written: {error}")
            yield True
            return
        self._is_locked = True
        try:
            yield True
        finally:
            self._is_locked = False
            lock.release()

    def contents(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "identity": self.identity,
            "choices": {f"{key:016x}": dataclasses.asdict(choice) for key, choice in sorted(self.choices.items())},
            "failed": self.failed,
            "tried": self._tried,
        }

    def _save(self) -> None:
        """At once or not at all: a reader never sees half of it. What others wrote meanwhile stays."""
        choices, failed, _ = self._read()
        self.choices, self.failed = choices | self.choices, failed | self.failed
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.path.parent, delete=False, encoding="utf-8") as file:
                json.dump(self.contents(), file, indent=1)
            os.replace(file.name, self.path)
        except OSError as error:
            self._warn(f"cannot be written: {error}")

    def add(self, key: int, choice: Choice) -> None:
        self.choices[key] = choice
        self._save()

    @contextlib.contextmanager
    def trying(self, kernel: str) -> Iterator[None]:
        """Should the process end here, the kernel is known to be to blame."""
        if not self._is_locked:
            yield
            return
        self._tried = kernel
        self._save()
        try:
            yield
        finally:
            self._tried = None
            self._save()

    def fail(self, kernel: str, reason: str) -> None:
        self.failed[kernel] = reason
        self._save()
