"""Rows that stay in registers: each element is loaded once, whatever walks along the row how often."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._inductor.utils import run_and_get_code

from tests.compile.support import check, compiled, with_once
from tests.support import DEVICE, to_device
from torch_webgpu.inductor import launch

LENGTHS = [5, 33, 48, 64, 100, 128, 768, 1000, 1023, 1028, 2500, 4096, 5000]


def normed(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(F.layer_norm(x + y, w.shape, w, b))


def rms_normed(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w


def masked(x: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
    return torch.softmax((x * 0.125 + bias).masked_fill(mask, -math.inf), -1)


def masked_with_dropout(x: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
    return F.dropout(masked(x, mask, bias), 0.25)


def halves_swapped(x: Tensor, w: Tensor) -> Tensor:
    """A masked load for each half."""
    x = rms_normed(x, w)
    first, second = x.chunk(2, -1)
    return x + torch.cat((-second, first), -1)


def operands(rows: int, length: int) -> dict[str, Tensor]:
    torch.manual_seed(length)
    x = torch.randn(rows, length)
    mask = torch.rand(rows, length) < 0.3
    mask[:, 0] = False  # a row that is masked out has no answer
    return {"x": x, "y": torch.randn(rows, length), "w": torch.rand(length) + 0.5, "b": torch.randn(length),
            "mask": mask, "bias": torch.randn(length)}  # fmt: skip


def loads(function: Callable[..., Tensor], *args: Tensor) -> tuple[Counter[str], str]:
    """How often the main function of the one kernel loads from each binding."""
    _, (code, *_) = run_and_get_code(compiled(function), *to_device(args))
    (text,) = re.findall(r"webgpu_runtime\.kernel\('\w+', r'''(.*?)'''", code, re.DOTALL)
    main = text[text.index("fn main(") :]
    main = main[: main.index("\n}\n")]
    return Counter(re.findall(r"load4?_(\w+)\(", main)), text


KEPT = [
    ("softmax", lambda x: torch.softmax(x, -1), "x"),
    ("log_softmax", lambda x: torch.log_softmax(x, -1), "x"),
    ("layer_norm, residual and gelu", normed, "xywb"),
    ("rms_norm", rms_normed, "xw"),
    ("softmax with mask and bias", masked, ("x", "mask", "bias")),
    ("softmax with mask, bias and dropout", masked_with_dropout, ("x", "mask", "bias")),
    ("variance", lambda x: torch.var_mean(x, -1), "x"),
    ("moments and extremes", lambda x: (x - x.amin(-1, keepdim=True)) / x.std(-1, keepdim=True), "x"),
]
IDS = [row[0] for row in KEPT]


@pytest.mark.once
@pytest.mark.parametrize("length", [64, 768])
@pytest.mark.parametrize(("function", "names"), [row[1:] for row in KEPT], ids=IDS)
def test_an_element_is_loaded_once(function: Callable[..., Tensor], names: str, length: int) -> None:
    given = operands(70, length)
    found, text = loads(function, *(given[name] for name in names))
    # The blocks of a row are a loop on software adapters, and written out on GPUs: there, 64 lanes take four each.
    written_out = 1 if launch.target()["software"] else math.ceil(length / 256)
    assert len(found) >= len(names)
    assert set(found.values()) <= {1, written_out}, (found, text)


@pytest.mark.parametrize(("function", "names", "most"), [
    (lambda x: torch.softmax(x, -1), "x", 1),  # the exponentials take the registers of the row
    (lambda x: torch.log_softmax(x, -1), "x", 1),  # the distances from the largest element are computed twice
    (normed, "xywb", 3),  # the sum, and two weights
], ids=["softmax", "log_softmax", "layer_norm"])  # fmt: skip
def test_registers_are_few(function: Callable[..., Tensor], names: str, most: int) -> None:
    given = operands(70, 768)
    _, text = loads(function, *(given[name] for name in names))
    assert text.count("var<private> kept_") == most


def test_rows_that_begin_within_a_quad() -> None:
    given = operands(70, 256)
    x = torch.randn(70 * 256 + 1)[1:].view(70, 256)
    check(normed, x, given["y"], given["w"], given["b"], rtol=1e-4, atol=1e-5)


def test_what_comes_together_twice() -> None:
    """Sums of the same registers, which two passes need."""

    def function(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        scaled = (x - x.mean(-1, keepdim=True)) * w + b
        return torch.tanh(scaled) / torch.exp(scaled).sum(-1, keepdim=True) + scaled.amax(-1, keepdim=True)

    given = operands(70, 768)
    check(function, *(given[name] for name in "xwb"), rtol=1e-4, atol=1e-5)


def test_long_rows_are_walked_again() -> None:
    found, text = loads(lambda x: torch.softmax(x, -1), torch.randn(8, 5000))
    assert "kept_" not in text
    assert max(found.values()) > 1


@pytest.mark.parametrize("length", with_once(LENGTHS, 48, 100, 768, 2500))
@pytest.mark.parametrize(("function", "names"), [row[1:] for row in KEPT if "dropout" not in row[0]],
                         ids=[name for name in IDS if "dropout" not in name])  # fmt: skip
def test_lengths(function: Callable[..., Tensor], names: str, length: int) -> None:
    given = operands(70, length)
    check(function, *(given[name] for name in names), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 3, 65])
def test_numbers_of_rows(rows: int) -> None:
    given = operands(rows, 256)
    check(normed, *(given[name] for name in "xywb"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_halves(dtype: torch.dtype) -> None:
    given = {name: x if x.dtype is torch.bool else x.to(dtype) for name, x in operands(70, 320).items()}
    check(normed, *(given[name] for name in "xywb"))
    check(masked, *(given[name] for name in ("x", "mask", "bias")))


def test_integers() -> None:
    x = torch.randint(-(2**60), 2**60, (70, 200))
    check(lambda x: x - x.amax(-1, keepdim=True) + x.sum(-1, keepdim=True), x)
    check(lambda x: (x // 3) - x.argmax(-1, keepdim=True), x)


@pytest.mark.once
def test_nan_and_infinity() -> None:
    x = torch.randn(70, 300)
    x[1, 7] = math.nan
    x[2, 299] = math.inf
    x[3, :] = -math.inf
    x[4, 8:] = -math.inf
    for function in (lambda x: torch.softmax(x, -1), lambda x: F.layer_norm(x, (300,)), lambda x: x - x.amax(-1, True)):
        check(function, x, rtol=1e-4, atol=1e-5)


def test_an_exponential_that_is_not_of_the_largest_element() -> None:
    """What would overflow is infinite, as in eager code."""
    x, y = torch.randn(70, 100), torch.randn(70, 100)
    y[3, 5] = 200.0
    check(lambda x, y: (torch.exp(y - x.amax(-1, keepdim=True)), y.sum(-1)), x, y, rtol=1e-4, atol=1e-4)


@pytest.mark.once
def test_variance_of_numbers_far_from_zero() -> None:
    x = (torch.randn(70, 500, dtype=torch.float64) * 1e-2 + 1e5).float()
    got = compiled(lambda x: x.var(1))(x.to(DEVICE))
    torch.testing.assert_close(got.cpu().double(), x.double().var(1), rtol=1e-3, atol=0)


@pytest.mark.parametrize("length", with_once([64, 72, 256], 64))
def test_masked_loads_within_a_row(length: int) -> None:
    given = operands(70, length)
    check(halves_swapped, given["x"], given["w"], rtol=1e-4, atol=1e-5)
    found, _ = loads(halves_swapped, given["x"], given["w"])
    assert max(found.values()) <= 3


def test_a_value_that_is_stored_and_used_again() -> None:
    def residual(x: Tensor, y: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        total = x + y
        return total, rms_normed(total, w)

    given = operands(70, 256)
    check(residual, *(given[name] for name in "xyw"), launches=1, rtol=1e-4, atol=1e-5)


def test_an_argument_that_is_changed() -> None:
    def centred(x: Tensor) -> Tensor:
        x.sub_(x.mean(-1, keepdim=True))
        return torch.softmax(x, -1)

    x = torch.randn(70, 200)
    given = x.to(DEVICE)
    expected = centred(x)
    torch.testing.assert_close(compiled(centred)(given).cpu(), expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(given.cpu(), x, rtol=1e-4, atol=1e-6)


def test_lengths_that_are_bounded() -> None:
    """One kernel for all lengths up to the bound, whose rows may end within a block."""

    def function(x: Tensor) -> Tensor:
        return torch.softmax(x, -1)

    call = compiled(function, dynamic=True)
    for length in (8, 100, 320, 511):
        x = torch.randn(70, length)
        given = x.to(DEVICE)
        torch._dynamo.mark_dynamic(given, 1, min=8, max=512)
        torch.testing.assert_close(call(given).cpu(), function(x), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("numel", with_once([1, 5, 63, 64, 200, 4100, 100003], 200, 4100))
def test_two_quads_at_a_time(numel: int) -> None:
    x, y = torch.randn(numel), torch.randn(numel)
    check(lambda x, y: F.gelu(x) + torch.tanh(y), x, y, launches=1, rtol=1e-4, atol=1e-5)


def test_two_quads_at_a_time_of_broadcast_operands() -> None:
    x, w, b = torch.randn(66, 36), torch.randn(66, 1), torch.randn(36)
    check(lambda x, w, b: torch.exp(x * w) + b, x, w, b, launches=1, rtol=1e-4, atol=1e-5)
    i = torch.randint(0, 66, (66, 36))
    check(lambda x, i: torch.exp(x.gather(0, i)), x, i, rtol=1e-4, atol=1e-5)
    check(lambda x, w, b: torch.exp(x * w).scatter_add(0, i.to(x.device), x + b), x, w, b, rtol=1e-4, atol=1e-5)
