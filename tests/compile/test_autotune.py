"""mode="max-autotune": kernels are timed, one of them is taken, and its time is remembered."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._inductor.utils import fresh_cache, run_and_get_code

from tests.compile.support import compiled
from tests.support import DEVICE, assert_same, to_device
from torch_webgpu import _C
from torch_webgpu.inductor import autotune
from torch_webgpu.tune import measure


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


PRODUCTS = {
    "square": ((64, 64), (64, 64)),
    "few rows": ((3, 100), (100, 40)),
    "odd": ((65, 33), (33, 31)),
    "row and matrix": ((1, 128), (128, 64)),
    "matrix and column": ((64, 128), (128, 1)),
    "batches": ((3, 20, 40), (3, 40, 24)),
    "large": ((128, 256), (256, 128)),
}
# Images, weight, stride, padding, dilation, and whether it is transposed with its groups.
CONVOLUTIONS = {
    "window": ((2, 3, 20, 20), (8, 3, 3, 3), [1, 1], [1, 1], [1, 1], [0, 1]),
    "step": ((1, 8, 33, 33), (20, 8, 5, 5), [2, 2], [2, 2], [1, 1], [0, 1]),
    "wide": ((1, 4, 40, 40), (6, 4, 7, 7), [1, 1], [0, 0], [2, 2], [0, 1]),
    "product": ((2, 16, 9, 9), (8, 16, 1, 1), [1, 1], [0, 0], [1, 1], [0, 1]),
    "groups": ((2, 12, 20, 20), (12, 4, 3, 3), [1, 1], [1, 1], [1, 1], [0, 3]),
    "transposed": ((2, 6, 20, 20), (6, 8, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1]),
    "transposed groups that step": ((2, 8, 14, 14), (8, 6, 4, 4), [2, 2], [1, 1], [1, 1], [1, 2]),
}


@pytest.mark.parametrize("shape", PRODUCTS)
def test_every_kernel_multiplies(shape: str) -> None:
    a, b = (torch.randn(size) for size in PRODUCTS[shape])
    expected = a @ b
    for transposed in (False, True):
        moved = [x.mT.contiguous().to(DEVICE).mT if transposed else x.to(DEVICE) for x in (a, b)]
        candidates = _C.matmul_candidates(*moved)
        assert len(candidates) >= 2
        for number, name in candidates:
            out = torch.full_like(expected, torch.nan).to(DEVICE)
            autotune.run("matmul", number, moved, (), out)
            assert_same(out, expected, name, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", CONVOLUTIONS)
def test_every_kernel_convolves(shape: str) -> None:
    x_size, weight_size, stride, padding, dilation, (transposed, groups) = CONVOLUTIONS[shape]
    window = [stride, padding, dilation, [transposed, groups]]
    x, weight = torch.randn(x_size), torch.randn(weight_size)
    if transposed:
        expected = F.conv_transpose2d(x, weight, None, stride, padding, 0, groups, dilation)
    else:
        expected = F.conv2d(x, weight, None, stride, padding, dilation, groups)
    moved, details = [x.to(DEVICE), weight.to(DEVICE)], [list(expected.shape), *window]
    candidates = _C.convolution_candidates(*moved, *details)
    assert len(candidates) >= 2
    for number, name in candidates:
        out = torch.full_like(expected, torch.nan).to(DEVICE)
        autotune.run("convolution", number, moved, details, out)
        assert_same(out, expected, name, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", ("square", "row and matrix", "batches"))
def test_products_of_templates_share_eagers_choice(shape: str) -> None:
    """The launcher's own choice for a template is that for the product alone, which is what is timed."""
    a, b = (torch.ones(size, device=DEVICE) for size in PRODUCTS[shape])
    out = a @ b
    keys = []
    for call in (lambda: a @ b, lambda: autotune.run("matmul", autotune.DEFAULT, [a, b], (), out)):
        keys.append([contest.key for contest in _C.contests_of(call)])
    assert keys[0] == keys[1]
    assert len(keys[0]) == 1


def test_a_kernel_that_is_not_for_the_product() -> None:
    a, out = torch.ones(8, 8, device=DEVICE), torch.ones(8, 8, device=DEVICE)
    for number, message in ((0, "'vector by 1' does not take this product"), (99, "no kernel 99 for products")):
        with pytest.raises(ValueError, match=message):
            autotune.run("matmul", number, [a, a], (), out)


def model(x: Tensor, w: Tensor, c: Tensor, image: Tensor, window: Tensor) -> Any:
    return x @ w, torch.addmm(c, x, w).relu() @ w, F.gelu(F.conv2d(image, window, padding=1))


ARGUMENTS = ((48, 64), (64, 64), (64,), (1, 3, 16, 16), (8, 3, 3, 3))


def arguments() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=generator) for size in ARGUMENTS]


def test_takes_the_fastest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is the fastest by the clock: here the last one is said to be, then the first one."""
    expected = model(*arguments())
    chosen = []
    for sign in (-1, 1):
        clock = itertools.count()
        monkeypatch.setattr(measure, "fastest_ms", lambda call, sign=sign, clock=clock: sign * next(clock))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(sign)))
        with fresh_cache():
            call = compiled(model, mode="max-autotune")
            results, codes = run_and_get_code(call, *to_device(arguments()))
        for result, wanted in zip(results, expected, strict=True):
            assert_same(result, wanted, rtol=1e-4, atol=1e-4)
        chosen.append([line.rsplit("(", 1)[1] for line in codes[0].splitlines() if line.strip().startswith("webgpu_")])
    products = _C.matmul_candidates(*to_device(arguments()[:2]))
    for numbers, place in zip(chosen, (-1, 0), strict=True):
        assert any(f", {products[place][0]}" in text for text in numbers), (numbers, products)


def test_a_kernel_that_does_not_compile_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = _C.Epilogue("broken", "fn epilogue(index: u32, product: f32) { nothing; }", "", (), (1,))
    monkeypatch.setattr(autotune, "_epilogue", lambda: broken)
    with fresh_cache(), pytest.raises(Exception, match="does not compile"):
        compiled(model, mode="max-autotune")(*to_device(arguments()))


CHILD = """
import torch
from tests.compile.test_autotune import arguments, model
from torch_webgpu.tune import measure
expected = model(*arguments())
results = torch.compile(model, mode="max-autotune")(*(x.to("webgpu") for x in arguments()))
for result, wanted in zip(results, expected):
    torch.testing.assert_close(result.cpu(), wanted, rtol=1e-4, atol=1e-4)
print("timed", measure.COUNTS["timed"])
"""


def test_times_are_remembered() -> None:
    """A second process compiles again, as the cache of graphs is off, but does not measure."""
    environment = {**os.environ, "TORCHINDUCTOR_FX_GRAPH_CACHE": "0"}
    timed = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", CHILD],
            env=environment,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        timed.append(int(done.stdout.split()[-1]))
    assert timed[0] >= 4
    assert timed[1] == 0
