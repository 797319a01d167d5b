"""Sparse tensors: gradients of embeddings, sums and products of coordinates, and compressed layouts by the fallback."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tests.support import DEVICE, fallback_mode, on_device

INDICES = torch.tensor([[0, 1, 1, 0], [2, 0, 0, 2]])
SIZE = (2, 3)


def coordinates(device: str, dtype: torch.dtype = torch.float32, rows: int = 0) -> torch.Tensor:
    """Two places, each twice; with `rows`, a row of so many values at each."""
    values = torch.arange(1, 5 * max(rows, 1) - max(rows, 1) + 1).to(dtype).to(device)
    return torch.sparse_coo_tensor(
        INDICES.to(device), values.view(4, rows) if rows else values, (*SIZE, rows)[: 2 + bool(rows)]
    )


def matrix(device: str, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(device)


def assert_alike(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert actual.device.type == DEVICE and actual.layout == expected.layout and actual.dtype == expected.dtype
    if expected.layout == torch.sparse_coo:
        assert (actual.sparse_dim(), actual.dense_dim()) == (expected.sparse_dim(), expected.dense_dim())
        actual, expected = actual.coalesce(), expected.coalesce()
        assert torch.equal(actual.indices().cpu(), expected.indices())
        actual, expected = actual.values(), expected.values()
    elif expected.layout != torch.strided:
        actual, expected = actual.to_sparse_coo().to_dense(), expected.to_dense()
    torch.testing.assert_close(actual.detach().cpu(), expected.detach())


OPS: dict[str, Callable[[str], Any]] = {
    "make": coordinates,
    "coalesce": lambda d: coordinates(d).coalesce(),
    "coalesce rows": lambda d: coordinates(d, rows=3).coalesce(),
    "coalesce bool": lambda d: coordinates(d, torch.bool).coalesce(),
    "coalesce int64": lambda d: coordinates(d, torch.int64).coalesce(),
    "coalesce 3d": lambda d: torch.sparse_coo_tensor(
        torch.tensor([[0, 1, 0], [2, 3, 2], [1, 1, 1]], device=d), torch.ones(3, device=d), (2, 4, 3)
    ).coalesce(),
    "of one element": lambda d: torch.sparse_coo_tensor(
        torch.zeros(0, 2, dtype=torch.long, device=d), torch.ones(2, device=d), ()
    ).coalesce(),
    "to_dense": lambda d: coordinates(d).to_dense(),
    "to_dense rows": lambda d: coordinates(d, rows=3).to_dense(),
    "to_dense of nothing": lambda d: torch.sparse_coo_tensor(SIZE, device=d).to_dense(),
    "to_sparse": lambda d: torch.eye(4, device=d).to_sparse(),
    "to_sparse rows": lambda d: torch.eye(4, device=d).to_sparse(1),
    "sparse_mask": lambda d: matrix(d, *SIZE).sparse_mask(coordinates(d).coalesce()),
    "half": lambda d: coordinates(d, torch.float16),
    "clone": lambda d: coordinates(d).clone(),
    "zero_": lambda d: coordinates(d).zero_(),
    "copy_": lambda d: coordinates(d).zero_().copy_(coordinates("cpu")),
    "t": lambda d: coordinates(d).t(),
    "cat": lambda d: torch.cat([coordinates(d), coordinates(d)]),
    "zeros_like": lambda d: torch.zeros_like(coordinates(d)),
    "neg": lambda d: -coordinates(d),
    "sqrt": lambda d: coordinates(d).coalesce().sqrt(),
    "add": lambda d: coordinates(d) + coordinates(d) * 2,
    "add to nothing": lambda d: torch.sparse_coo_tensor(SIZE, device=d) + coordinates(d),
    "sub": lambda d: coordinates(d) - coordinates(d).coalesce(),
    "add to dense": lambda d: matrix(d, *SIZE) + coordinates(d),
    "add rows to dense": lambda d: matrix(d, *SIZE, 3) + coordinates(d, rows=3),
    "add_ to dense": lambda d: matrix(d, *SIZE).add_(coordinates(d), alpha=3),
    "add_ to transposed": lambda d: matrix(d, 3, 2).t().add_(coordinates(d), alpha=3),
    "mul number": lambda d: coordinates(d) * 3,
    "mul_ number": lambda d: coordinates(d).mul_(2),
    "div number": lambda d: coordinates(d) / 2,
    # Of a place that only one has, the CPU keeps a zero.
    "mul sparse": lambda d: (coordinates(d) * torch.tensor([[0, 0, 2.0], [0, 1, 0]], device=d).to_sparse()).to_dense(),
    "mul dense": lambda d: coordinates(d) * matrix(d, *SIZE),
    "mul row": lambda d: coordinates(d) * matrix(d, 3),
    "mm": lambda d: coordinates(d) @ matrix(d, 3, 2),
    "dense mm sparse": lambda d: matrix(d, 4, 2) @ coordinates(d),
    "addmm": lambda d: torch.sparse.addmm(matrix(d, 2, 2), coordinates(d), matrix(d, 3, 2), beta=2, alpha=0.5),
    "mv": lambda d: coordinates(d) @ matrix(d, 3),
    "sum": lambda d: coordinates(d).sum(),
    "sum of rows": lambda d: torch.sparse.sum(coordinates(d), 0),
    "norm": lambda d: coordinates(d).norm(),
    "move": lambda d: coordinates("cpu").to(d),
    "deepcopy": lambda d: copy.deepcopy(coordinates(d)),
}


@pytest.mark.parametrize("name", OPS)
def test_coordinates(name: str) -> None:
    expected = OPS[name]("cpu")
    with on_device(dispatches=None, waits=None):  # how many elements are left, the host has to know
        actual = OPS[name](DEVICE)
    assert_alike(actual, expected)


FALLBACKS: dict[str, Callable[[str], Any]] = {
    "sparse mm sparse": lambda d: coordinates(d) @ coordinates(d).t(),
    "softmax": lambda d: torch.sparse.softmax(coordinates(d).coalesce(), 1),
    "index_select": lambda d: coordinates(d).index_select(0, torch.tensor([1], device=d)),
}
COMPRESSED: dict[str, Callable[[torch.Tensor], Any]] = {
    "to_dense": torch.Tensor.to_dense,
    "to_sparse_coo": torch.Tensor.to_sparse_coo,
    "mm": lambda x: x @ matrix(x.device.type, 3, 2),
    "add": lambda x: x + x,
    "mul": lambda x: x * 2,
    "neg": torch.neg,
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_what_the_cpu_does(name: str) -> None:
    with fallback_mode("quiet"):
        before = sum(torch.webgpu.cpu_fallbacks().values())
        actual = FALLBACKS[name](DEVICE)
        assert sum(torch.webgpu.cpu_fallbacks().values()) > before
        assert_alike(actual, FALLBACKS[name]("cpu"))
    with pytest.raises(NotImplementedError, match="has no webgpu kernel"), fallback_mode("error"):
        FALLBACKS[name](DEVICE)


@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed_rows(name: str) -> None:
    here = torch.eye(3)[:2].to_sparse_csr()
    there = here.to(DEVICE)
    assert torch.equal(there.crow_indices().cpu(), here.crow_indices()) and there._nnz() == 2
    with fallback_mode("quiet"):
        before = sum(torch.webgpu.cpu_fallbacks().values())
        assert_alike(COMPRESSED[name](there), COMPRESSED[name](here))
        assert sum(torch.webgpu.cpu_fallbacks().values()) > before


def test_printed_and_saved() -> None:
    there = coordinates(DEVICE)
    assert "nnz=4, layout=torch.sparse_coo" in repr(there)
    file = io.BytesIO()
    torch.save(there, file)
    file.seek(0)
    assert_alike(torch.load(file), coordinates("cpu"))


def trained(device: str, make: Callable[[], nn.Module], optimizer: Any) -> torch.Tensor:
    torch.manual_seed(0)
    module = make().to(device)
    steps = optimizer(module.parameters(), lr=0.1)
    for step in range(3):
        steps.zero_grad()
        looked_up = torch.tensor([[1, 2, 2, 5], [3, 9, 1, step]], device=device)
        module(looked_up).square().sum().backward()
        (weight,) = module.parameters()
        assert weight.grad is not None and weight.grad.is_sparse
        steps.step()
    return weight.detach()


@pytest.mark.parametrize("optimizer", (torch.optim.SGD, torch.optim.SparseAdam, torch.optim.Adagrad))
@pytest.mark.parametrize(
    "make",
    (
        lambda: nn.Embedding(10, 4, sparse=True),
        lambda: nn.Embedding(10, 4, sparse=True, padding_idx=1, scale_grad_by_freq=False),
        lambda: nn.EmbeddingBag(10, 4, sparse=True, mode="sum"),
        lambda: nn.EmbeddingBag(10, 4, sparse=True, mode="mean"),
    ),
    ids=("embedding", "padded", "bag", "means"),
)
def test_embeddings_learn(make: Callable[[], nn.Module], optimizer: Any) -> None:
    expected = trained("cpu", make, optimizer)
    with on_device(waits=None) as results:
        results.append(trained(DEVICE, make, optimizer))
    assert_alike(results[0], expected)


def test_gradients_add_up() -> None:
    """One table looked up twice, and the scaler's check of such a gradient."""

    def run(device: str) -> torch.Tensor:
        table = matrix(device, 6, 3).requires_grad_()
        rows = [nn.functional.embedding(torch.tensor(x, device=device), table, sparse=True) for x in ([1, 4], [4, 0])]
        (rows[0] * rows[1]).sum().backward()
        assert table.grad is not None
        return table.grad

    with on_device(waits=None):
        actual = run(DEVICE)
    assert_alike(actual, run("cpu"))
    scaler = torch.amp.GradScaler(DEVICE, init_scale=4.0)
    weight = nn.Parameter(matrix(DEVICE, 6, 3))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    with on_device(waits=None):
        scaler.scale(nn.functional.embedding(torch.tensor([1, 1], device=DEVICE), weight, sparse=True).sum()).backward()
        scaler.step(optimizer)
    expected = matrix("cpu", 6, 3)
    expected[1] -= 2
    torch.testing.assert_close(weight.detach().cpu(), expected)


@pytest.mark.parametrize("name", ("mm of dense", "mm of sparse", "to_dense"))
def test_gradients(name: str) -> None:
    def run(device: str) -> torch.Tensor:
        sparse, dense = coordinates(device).requires_grad_(), matrix(device, 3, 2).requires_grad_()
        made = sparse.to_dense() if name == "to_dense" else torch.sparse.mm(sparse, dense)
        made.square().sum().backward()
        gradient = dense.grad if name == "mm of dense" else sparse.grad
        assert gradient is not None
        return gradient

    with on_device(waits=None):
        actual = run(DEVICE)
    assert_alike(actual, run("cpu"))
