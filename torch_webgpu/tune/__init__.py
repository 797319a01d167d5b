"""Kernels chosen by measurement: where several can compute a launch, they are timed on this machine, once.

The table of a family's kernels (csrc/families/matmul.cpp, for example) says which of them a launch takes. Launches that
take real time are timed with the others as well, in the background of the user's work; the fastest is taken from then
on, here and in later processes. csrc/families/choices.h is what launches look at.
"""

from __future__ import annotations

import atexit
import os
import warnings

from torch_webgpu import _C
from torch_webgpu.tune.measure import Stopped, hold
from torch_webgpu.tune.store import Store

VARIABLE = "TORCH_WEBGPU_TUNE"

# Multiply-adds of like launches, from which on they are timed: a tenth of a second of a GPU, seconds of a processor.
_WORK_OF_GPU, _WORK_OF_SOFTWARE = 1 << 39, 1 << 36
_NOW = 1  # whatever a launch's work is
_MOST_BYTES = 1 << 30  # of scratch: the memory is the user's

_stopping = False


def mode() -> str:
    """What the user asked for; or else GPUs are tuned, and software adapters are not: their kernels are."""
    asked = os.environ.get(VARIABLE, "")
    if asked in ("off", "lazy", "now"):
        return asked
    if asked:
        warnings.warn(f"{VARIABLE} may be off, lazy or now, not '{asked}': nothing is tuned", stacklevel=2)
        return "off"
    return "off" if _is_software() else "lazy"


def _is_software() -> bool:
    properties = _C.device_properties()
    return properties["type"] == "cpu" or properties["backend"] == "null"


def opened() -> None:
    """Called when the device is opened, before its first launch."""
    chosen = mode()
    if chosen == "off":
        return
    for key, choice in Store().choices.items():
        _C.set_choice(key, choice.number)
    _C.start_choices(_NOW if chosen == "now" else _WORK_OF_SOFTWARE if _is_software() else _WORK_OF_GPU, _work)
    atexit.register(_stop)


def _stop() -> None:
    global _stopping
    _stopping = True
    _C.stop_tuning()


def _go_on() -> None:
    if _stopping:
        raise Stopped


def _work() -> None:
    """On a thread of its own: times what is queued."""
    store = Store()
    with store.lock() as is_mine:
        while (contest := _C.next_contest()) is not None:
            if not is_mine or contest.size_bytes > _MOST_BYTES:
                continue  # another process tunes, and a later one reads what it finds
            try:
                if choice := hold(contest, store, _go_on):
                    _C.set_choice(contest.key, choice.number)
            except Stopped:
                return
            except Exception as error:
                warnings.warn(f"webgpu: {contest.text} is not tuned: {error}", stacklevel=1)
