from collections.abc import Callable, Sequence
from typing import Any

import torch

def set_library_paths(dawn: list[str], wgpu: list[str]) -> None: ...
def is_available() -> bool: ...
def unavailable_reason() -> str: ...
def is_open() -> bool: ...
def in_bad_fork() -> bool: ...
def device_properties() -> dict[str, object]: ...
def synchronize() -> None: ...
def flush() -> None: ...
def counters() -> dict[str, int]: ...
def empty_cache() -> None: ...

class Profile:
    def start(self) -> None: ...
    def stop(self) -> None: ...
    @property
    def has_device_times(self) -> bool: ...
    @property
    def rows(self) -> list[tuple[str, str, tuple[int, int, int], int, int, int, int, int, int]]: ...

def reset_peak_memory_stats() -> None: ...
def reset_accumulated_memory_stats() -> None: ...
def mem_get_info() -> tuple[int, int]: ...
def set_memory_limit(bytes: int) -> None: ...
def fallback_counts() -> dict[str, int]: ...
def reset_fallback_counts() -> None: ...
def fallback_mode() -> str: ...
def set_fallback_mode(mode: str) -> None: ...
def default_generator() -> torch.Generator: ...
def lose_device() -> None: ...
def forbid_resizing(storage: torch.UntypedStorage) -> None: ...
def time_add(elements: int, repeats: int, dry: bool) -> float: ...

class Kernel:
    label: str
    wgsl: str
    def __init__(
        self,
        label: str,
        wgsl: str,
        entry_point: str,
        bindings: int,
        read_only: int,
        uniforms: int = 1,
        wait: bool = True,
        pages: Sequence[int] = (),
    ) -> None: ...
    def finish(self) -> None: ...
    def __call__(
        self,
        tensors: Sequence[torch.Tensor],
        words: Sequence[int],
        grid: Sequence[int],
        offsets: bool = False,
    ) -> None: ...

class Epilogue:
    def __init__(self, label: str, elements: str, fours: str, files: Sequence[str], pages: Sequence[int]) -> None: ...
    def matmul(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        tensors: Sequence[torch.Tensor],
        read_only: int,
        words: Sequence[int],
        candidate: int = -1,
    ) -> None: ...
    def convolution(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        sizes: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        form: Sequence[int],
        tensors: Sequence[torch.Tensor],
        read_only: int,
        words: Sequence[int],
        candidate: int = -1,
    ) -> None: ...
    def attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        log_sum: torch.Tensor | None,
        order: Sequence[int],
        causal: bool,
        scale: float | None,
        tensors: Sequence[torch.Tensor],
        read_only: int,
        words: Sequence[int],
    ) -> None: ...

def force_attention(name: str) -> None: ...
def force_matmul(name: str) -> None: ...
def matmul_candidates(a: torch.Tensor, b: torch.Tensor) -> list[tuple[int, str]]: ...
def convolution_candidates(
    x: torch.Tensor,
    weight: torch.Tensor,
    sizes: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    form: Sequence[int],
) -> list[tuple[int, str]]: ...

epilogue_places: dict[str, tuple[int, int]]

class FlexAttention:
    def __init__(self, label: str, text: str, files: Sequence[str], bindings: int) -> None: ...
    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        strides: Sequence[int],
        blocks: tuple[Any, ...],
        captured: Sequence[torch.Tensor],
        words: Sequence[int],
        scale: float,
        with_most: bool,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]: ...
    def backward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        out: torch.Tensor,
        log_sum: torch.Tensor,
        grad: torch.Tensor | None,
        log_sum_grad: torch.Tensor | None,
        strides: Sequence[Sequence[int]],
        blocks: tuple[Any, ...],
        captured: Sequence[torch.Tensor],
        words: Sequence[int],
        scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]: ...

flex_words: int

class RecordedFunction:
    recordings: int
    replays: int
    failures: list[str]
    def __init__(
        self, function: Callable[[list[Any]], Any], constants: Sequence[torch.Tensor] = (), fixed: bool = False
    ) -> None: ...
    def __call__(self, arguments: list[Any]) -> Any: ...

def formulas() -> dict[str, dict[str, Any]]: ...
def specialise(formula: str, type: str, library: str = "") -> str: ...
def wgsl(name: str) -> str: ...
def wgsl_needs(name: str) -> list[str]: ...
def target() -> dict[str, Any]: ...
def recurrent(
    kind: int,
    input: torch.Tensor,
    states: Sequence[torch.Tensor],
    params: Sequence[torch.Tensor],
    has_biases: bool,
    layers: int,
    dropout: float,
    bidirectional: bool,
    batch_first: bool,
) -> list[torch.Tensor]: ...
