"""Every kernel of matrix products for GPUs, forced on this adapter; test_gpu_kernels runs this file as on a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.support import on_device
from torch_webgpu import _C

Tensor = torch.Tensor

# A software adapter compiles a tile for seconds: of tiles and ways to load, each is here at least twice, not with each.
SMALLEST = "32x32"
TILES = {
    SMALLEST: ("nn", "nt", "tn", "tt", "loose"),
    "64x64": ("nn", "nt"),
    "64x64 by 64": ("nt",),
    "128x128 twice": ("nn", "nt"),
}
TILES_OF_HALVES = {SMALLEST: ("nn", "nt", "tn"), "64x64": ("nn",), "128x128": ("nt",)}
THIN = {"thin 1": 1, "thin 4": 4, "thin 16": 16}
QUADS, ODD = (132, 136, 40), (67, 35, 21)  # rows, columns, inner side: edges of tiles, of slices, and of quads


@pytest.fixture(autouse=True)
def automatic() -> Iterator[None]:
    yield
    _C.force_matmul("")


def padded(rows: int, columns: int, turned: bool, dtype: torch.dtype, loose: bool = False) -> Tensor:
    """A matrix on the device, with NaN in the memory in front of it and behind it."""
    shape = (columns, rows) if turned else (rows, columns)
    step = 2 if loose else 1
    flat = torch.full((8 + shape[0] * shape[1] * step + 64,), float("nan"), dtype=dtype)
    matrix = flat[8 : 8 + shape[0] * shape[1] * step].view(shape[0], shape[1], step)
    matrix[..., 0] = torch.randn(shape).mul(0.5).to(dtype)
    matrix = flat.to("webgpu")[8 : 8 + shape[0] * shape[1] * step].view(shape[0], shape[1], step)[..., 0]
    return matrix.t() if turned else matrix


def operands(m: int, n: int, k: int, layout: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    loose = layout == "loose"
    return padded(m, k, layout[0] == "t", dtype, loose), padded(k, n, layout[1] == "t", dtype, loose)


def exact(a: Tensor, b: Tensor) -> Tensor:
    return a.cpu().double() @ b.cpu().double()


def close(actual: Tensor, expected: Tensor) -> None:
    error = (actual.cpu().double() - expected).abs().max() / expected.abs().max()
    assert error <= {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}[actual.dtype], error


def labels_of(run: object) -> list[str]:
    profile = _C.Profile()
    profile.start()
    run()  # type: ignore[operator]
    profile.stop()
    return [row[0] for row in profile.rows]


def check_ran(name: str, a: Tensor, b: Tensor) -> None:
    """Also that the kernel is the forced one, which takes the name of the tile, or of the rows."""
    labels = labels_of(lambda: a @ b)
    assert any(label.startswith(f"matmul {name}") for label in labels), labels


def check_tile(name: str, layout: str, dtype: torch.dtype, shapes: tuple[tuple[int, int, int], ...]) -> None:
    _C.force_matmul(name)
    for m, n, k in shapes:
        a, b = operands(m, n, k, layout, dtype)
        with on_device():
            actual = a @ b
        close(actual, exact(a, b))
        check_ran(name, a, b)


@pytest.mark.parametrize(("name", "layout"), [(name, layout) for name in TILES for layout in TILES[name]])
def test_tiles(name: str, layout: str) -> None:
    check_tile(name, layout, torch.float32, (QUADS, (36, 260, 100)))


@pytest.mark.parametrize(("name", "layout"), [(SMALLEST, "nn"), (SMALLEST, "nt"), ("64x64", "tn")])
def test_tiles_of_any_size(name: str, layout: str) -> None:
    check_tile(name, layout, torch.float32, (ODD,))


@pytest.mark.parametrize(("name", "layout"), [(name, x) for name in TILES_OF_HALVES for x in TILES_OF_HALVES[name]])
def test_tiles_of_halves(name: str, layout: str) -> None:
    check_tile(name, layout, torch.float16, (QUADS,))


def test_tiles_of_bfloat16() -> None:
    check_tile(SMALLEST, "nn", torch.bfloat16, (QUADS, ODD))


def test_no_such_tile() -> None:
    with pytest.raises(ValueError, match="no kernel of matrix products named no such"):
        _C.force_matmul("no such")


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.bfloat16), ids=("f32", "f16", "bf16"))
@pytest.mark.parametrize("name", THIN)
def test_thin(name: str, dtype: torch.dtype) -> None:
    _C.force_matmul(name)
    for layout in ("nn", "nt"):
        for rows in {1, THIN[name] - 1 or 1, THIN[name]}:
            for n, k in ((300, 100), (36, 531), (36, 2048)):  # one step less than a quad; several parts
                a, b = operands(rows, n, k, layout, dtype)
                with on_device():
                    actual = a @ b
                close(actual, exact(a, b))
                check_ran(name, a, b)
                with on_device():
                    turned = b.t() @ a.t()
                close(turned, exact(b.t(), a.t()))


@pytest.mark.parametrize("name", (SMALLEST, *THIN))
def test_batches_and_strides(name: str) -> None:
    _C.force_matmul(name)
    rows = THIN.get(name, 20)
    a, b = torch.randn(3, rows, 40).to("webgpu"), torch.randn(3, 40, 36).to("webgpu")
    for x, y in ((a, b), (a, b[:1].expand(3, 40, 36)), (a[:, :, 3:], b[:, 3:]), (a, b.transpose(1, 2).contiguous().mT)):
        with on_device():
            actual = torch.bmm(x, y)
        close(actual, exact(x, y))


@pytest.mark.parametrize("name", (SMALLEST, *THIN))
def test_what_is_added(name: str) -> None:
    """Vectors, columns, matrices, in place, and into a view; with few steps, and with so many that parts are added."""
    _C.force_matmul(name)
    rows = THIN.get(name, 33)
    for n, k in ((68, 40), (37, 40), (36, 1300)):
        a, b = padded(rows, k, False, torch.float32), padded(k, n, name in THIN, torch.float32)
        product = exact(a, b)
        for shape in ((n,), (rows, 1), (rows, n)) if n == 68 or name != SMALLEST else ((n,),):
            c = torch.randn(shape).to("webgpu")
            with on_device():
                actual = torch.addmm(c, a, b, alpha=0.5, beta=2)
            close(actual, product * 0.5 + 2 * c.cpu().double().expand(rows, n))
        c = torch.randn(rows, n).to("webgpu")
        expected = c.cpu().double() + product
        with on_device():
            c.addmm_(a, b)
        close(c, expected)
        wide = torch.zeros(rows, n + 3).to("webgpu")
        wide[:, 1 : n + 1].addmm_(a, b)
        close(wide[:, 1 : n + 1], product)
        assert wide.cpu()[:, (0, n + 1, n + 2)].eq(0).all()
        turned = torch.zeros(n, rows).to("webgpu").t()
        torch.mm(a, b, out=turned)
        close(turned, product)


ELEMENTS = """
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
fn epilogue(index: u32, product: f32) { out[index] = 2.0 * product + 1.0; }
"""
FOURS = """
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>;
fn epilogue_four(index: u32, product: vec4<f32>) { out[index / 4u] = 2.0 * product + vec4<f32>(1.0); }
"""


@pytest.mark.parametrize("name", (SMALLEST, *THIN))
def test_epilogues_of_other_texts(name: str) -> None:
    _C.force_matmul(name)
    epilogue = _C.Epilogue("twice and one", ELEMENTS, FOURS, [], [1])
    rows = THIN.get(name, 33)
    for n, k in ((68, 40), (37, 40), (36, 1300)):
        for turned in (False, True) if name != SMALLEST else (False,):
            a, b = padded(rows, k, False, torch.float32), padded(k, n, turned, torch.float32)
            out = torch.empty(rows, n).to("webgpu")
            with on_device():
                epilogue.matmul(a, b, [out], 0, [])
            close(out, exact(a, b) * 2 + 1)


def test_large_inner_sides_come_in_parts() -> None:
    a, b = torch.randn(64, 4096).to("webgpu"), torch.randn(4096, 64).to("webgpu")
    labels = labels_of(lambda: a @ b)
    assert [label.split(",")[0].split(" (")[0] for label in labels] == ["matmul 32x32", "matmul join"]
    close(a @ b, exact(a, b))
    c = torch.randn(64).to("webgpu")
    with on_device(dispatches=2):
        actual = torch.addmm(c, a, b)
    close(actual, exact(a, b) + c.cpu().double())


def test_what_gpus_choose() -> None:
    """Without a word, by shape: the largest tiles that occupy a large GPU."""
    chosen = {}
    for rows, columns in ((2, 4096), (10, 512), (200, 200), (1024, 1024)):
        a, b = torch.zeros(rows, 4).to("webgpu"), torch.zeros(4, columns).to("webgpu")
        chosen[rows, columns] = (
            labels_of(lambda a=a, b=b: a @ b)[0].removeprefix("matmul ").split(" (")[0].split(",")[0]
        )
    assert chosen == {
        (2, 4096): "thin 4 across",
        (10, 512): "thin 16 across",
        (200, 200): SMALLEST,
        (1024, 1024): "64x64",
    }
