"""Factorizations, and the solutions, inverses and determinants that come from them, against LAPACK's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import linalg

from tests.support import assert_same, assert_same_error, fallback_mode, on_device, outcome, run_on_device, to_device

Function = Callable[..., Any]

# The older ops are ops still.
pytestmark = pytest.mark.filterwarnings("ignore:torch.(cholesky|triangular_solve) is deprecated")

# Below, at and above what one kernel takes whole; batches of one and of two dimensions.
SHAPES = ((1,), (3, 2), (2, 2, 5), (2, 17), (33,), (2, 70))


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed * 7919 + sum(shape)))


def square(*shape: int) -> torch.Tensor:
    """Well conditioned, and with rows to swap."""
    size = shape[-1]
    return (randn(*shape, size) / size**0.5 + torch.eye(size)).flip(-2)


def positive(*shape: int) -> torch.Tensor:
    a = square(*shape)
    return a @ a.mT + torch.eye(shape[-1])


def triangular(*shape: int) -> torch.Tensor:
    return randn(*shape, shape[-1]) / shape[-1] ** 0.5 + 2 * torch.eye(shape[-1])


def sides(*shape: int, count: int = 9) -> torch.Tensor:
    return randn(*shape, count, seed=1)


def tall(*shape: int) -> torch.Tensor:
    return randn(*shape, shape[-1] + 7).mT


def compare(function: Function, *args: Any, tolerance: float = 1e-4, gradient: bool = True) -> None:
    """Results and gradients, of tensors of any strides."""
    here = [x.detach().requires_grad_(gradient and x.is_floating_point()) for x in args]
    there = to_device(here)
    # PyTorch's own code looks at the info codes of factorizations on the host.
    expected, actual = function(*here), run_on_device(function, *there, waits=None)
    assert_same(actual, expected, "result", rtol=tolerance, atol=tolerance)
    results = [x for x in (expected if isinstance(expected, tuple) else (expected,)) if x.requires_grad]
    if not results:
        return
    got = [x for x in (actual if isinstance(actual, tuple) else (actual,)) if x.requires_grad]
    weights = [randn(*x.shape, seed=2) for x in results]
    inputs = [x for x in here if x.requires_grad]
    wanted = torch.autograd.grad(results, inputs, weights, allow_unused=True)
    with on_device(dispatches=None, waits=None) as found:
        found += torch.autograd.grad(got, [x for x in there if x.requires_grad], to_device(weights), allow_unused=True)
    for one, other in zip(found, wanted, strict=True):
        scale = max(1.0, other.abs().max().item())
        assert_same(one, other, "gradient", rtol=10 * tolerance, atol=10 * tolerance * scale, strides=False)


SQUARE: dict[str, Function] = {
    "lu_factor": lambda a: tuple(linalg.lu_factor(a)),
    "lu": lambda a: tuple(linalg.lu(a)),
    "lu_factor of rows": lambda a: tuple(linalg.lu_factor(a.mT)),
    "inv": linalg.inv,
    "det": linalg.det,
    "slogdet": lambda a: tuple(linalg.slogdet(a)),
    "matrix_power": lambda a: linalg.matrix_power(a, -3),
    "qr": lambda a: tuple(linalg.qr(a)),
}
POSITIVE: dict[str, Function] = {
    "cholesky": linalg.cholesky,
    "cholesky, upper": lambda a: linalg.cholesky(a, upper=True),
    "cholesky_inverse": lambda a: torch.cholesky_inverse(linalg.cholesky(a)),
    "cholesky_inverse, upper": lambda a: torch.cholesky_inverse(linalg.cholesky(a, upper=True), upper=True),
    "logdet": torch.logdet,
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", SQUARE)
def test_of_a_square_matrix(name: str, shape: tuple[int, ...]) -> None:
    compare(SQUARE[name], square(*shape))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", POSITIVE)
def test_of_a_positive_matrix(name: str, shape: tuple[int, ...]) -> None:
    compare(POSITIVE[name], positive(*shape))


@pytest.mark.parametrize("count", (1, 9))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_solve(shape: tuple[int, ...], count: int) -> None:
    a, b = square(*shape), sides(*shape, count=count)
    compare(linalg.solve, a, b)
    compare(lambda a, b: linalg.solve(a, b, left=False), a.mT, b.mT)
    compare(lambda a, b: torch.cholesky_solve(b, linalg.cholesky(a)), positive(*shape), b)
    compare(lambda a, b: torch.cholesky_solve(b, linalg.cholesky(a, upper=True), upper=True), positive(*shape), b)
    for left in (True, False):
        for adjoint in (True, False):
            compare(
                lambda a, b, left=left, adjoint=adjoint: linalg.lu_solve(
                    *linalg.lu_factor(a), b, left=left, adjoint=adjoint
                ),
                *(a, b if left else b.mT),
            )


@pytest.mark.parametrize("unit", (True, False))
@pytest.mark.parametrize("left", (True, False))
@pytest.mark.parametrize("upper", (True, False))
@pytest.mark.parametrize("shape", ((3, 5), (2, 70)), ids=str)
def test_solve_triangular(shape: tuple[int, ...], upper: bool, left: bool, unit: bool) -> None:
    a = triangular(*shape) / (4 if unit else 1)  # what is not of the triangle is not looked at
    for count in (2, 9):
        b = sides(*shape, count=count) if left else sides(*shape, count=count).mT
        for one, other in ((a, b), (a.mT.contiguous().mT, b.contiguous()), (a, b[0])):
            compare(lambda a, b: linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit), one, other)
    b = sides(*shape)
    compare(lambda a, b: tuple(torch.triangular_solve(b, a, upper, left, unit)), a, b)


def test_a_long_column_is_solved_in_parts() -> None:
    a = triangular(1100)
    compare(lambda a, b: linalg.solve_triangular(a, b, upper=False), a, sides(1100, count=1), gradient=False)


@pytest.mark.parametrize("mode", ("reduced", "complete", "r"))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_qr(shape: tuple[int, ...], mode: str) -> None:
    a = tall(*shape)
    compare(lambda a: tuple(linalg.qr(a, mode=mode)), a, gradient=mode == "reduced")
    compare(lambda a: tuple(linalg.qr(a, mode=mode)), a.mT, gradient=mode == "complete")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reflections(shape: tuple[int, ...]) -> None:
    a = tall(*shape)
    compare(lambda a: tuple(torch.geqrf(a)), a, gradient=False)
    vectors, tau = torch.geqrf(a)
    compare(linalg.householder_product, vectors, tau)
    compare(linalg.householder_product, vectors, tau[..., :-1].contiguous(), gradient=False)
    for left in (True, False):
        other = randn(*a.shape[:-1], 4, seed=3) if left else randn(*a.shape[:-2], 4, a.shape[-2], seed=3)
        for transpose in (True, False):
            compare(
                lambda a, t, c, left=left, transpose=transpose: torch.ormqr(a, t, c, left, transpose),
                *(vectors, tau, other),
                gradient=False,
            )


@pytest.mark.parametrize("rows, columns", ((40, 23), (23, 40), (3, 1), (1, 3)))
def test_lu_of_a_rectangle(rows: int, columns: int) -> None:
    a = randn(2, rows, columns)
    compare(lambda a: tuple(linalg.lu_factor(a)), a)
    compare(lambda a: tuple(linalg.lu(a)), a)
    lu = tuple(linalg.lu_factor(a))
    compare(torch.lu_unpack, *lu)
    for data, pivots in ((True, False), (False, True)):
        compare(lambda a, p, d=data, q=pivots: torch.lu_unpack(a, p, d, q), *lu, gradient=False)


def test_equal_pivots_take_the_first_row() -> None:
    a = torch.randint(-1, 2, (4, 40, 40), generator=torch.Generator().manual_seed(0)).float() + 3 * torch.eye(40)
    compare(lambda a: tuple(linalg.lu_factor(a)), a, gradient=False)


def test_lu_without_pivoting() -> None:
    a = positive(2, 40)
    lu, pivots, _ = run_on_device(linalg.lu_factor_ex, to_device(a), pivot=False)
    assert (pivots.cpu() == torch.arange(1, 41)).all()
    lu = lu.cpu()
    torch.testing.assert_close((lu.tril(-1) + torch.eye(40)) @ lu.triu(), a, rtol=1e-4, atol=1e-4)


def test_batches_broadcast() -> None:
    a, b = square(2, 1, 5), sides(3, 5, count=2)
    compare(linalg.solve, a, b)
    compare(lambda a, b: linalg.solve_triangular(a, b, upper=True), a, b)
    compare(lambda a, b: torch.cholesky_solve(b, a), triangular(2, 1, 5), b)
    compare(lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b), a, b)
    compare(linalg.solve, square(4, 5), randn(5))
    lu, pivots = linalg.lu_factor(square(5))
    for factors in (lu, lu.contiguous()):
        compare(linalg.lu_solve, factors, pivots, b)


def test_signs_of_reflections() -> None:
    tiny = torch.tensor([[1.0, 2.0], [1e-30, 3.0]])
    large = torch.tensor([[1e30, 2.0], [-1e30, 3.0]])
    for a in (torch.zeros(4, 3), torch.eye(4), -torch.eye(4), -randn(4, 4).abs(), tiny, large):
        compare(lambda a: tuple(linalg.qr(a)), a, gradient=False)
        compare(lambda a: tuple(torch.geqrf(a)), a, gradient=False)


def singular() -> torch.Tensor:
    return torch.tensor([[[1.0, 2.0, 3.0], [2.0, 4.0, 7.0], [1.0, 2.0, 4.0]], [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]])


def test_info() -> None:
    compare(lambda a: linalg.lu_factor_ex(a)[1:], torch.cat([singular(), torch.zeros(1, 3, 3)]), gradient=False)
    definite = torch.stack([torch.eye(40), torch.eye(40)])
    definite[0, 36, 36] = -1
    definite[0, 38, 38] = 0
    compare(lambda a: linalg.cholesky_ex(a).info, definite, gradient=False)
    compare(lambda a: linalg.cholesky_ex(a[:, :2, :2])[1], definite, gradient=False)
    compare(lambda a: linalg.inv_ex(a).info, singular(), gradient=False)


REFUSED: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "inverse of a singular matrix": (linalg.inv, (torch.ones(3, 3),)),
    "of one in a batch": (linalg.inv, (singular(),)),
    "solution": (linalg.solve, (torch.zeros(2, 2), torch.ones(2))),
    "factors": (linalg.lu_factor, (torch.zeros(2, 2),)),
    "Cholesky of an indefinite matrix": (linalg.cholesky, (-torch.eye(3),)),
    "the older op": (torch.cholesky, (-torch.eye(3).expand(2, 3, 3),)),
    "inverse of a singular factor": (torch.cholesky_inverse, (torch.tensor([[1.0, 0.0], [1.0, 0.0]]),)),
    "not square": (linalg.inv, (torch.ones(2, 3),)),
    "a vector": (linalg.cholesky, (torch.ones(2),)),
    "sizes that do not fit": (linalg.solve, (torch.ones(2, 2), torch.ones(3, 1))),
    "triangle": (lambda a, b: linalg.solve_triangular(a, b, upper=True), (torch.ones(2, 3), torch.ones(3, 1))),
    "reflections": (linalg.householder_product, (torch.ones(2, 3), torch.ones(2))),
    "mode": (lambda a: linalg.qr(a, mode="full"), (torch.ones(2, 2),)),
    "dtypes": (torch.cholesky_solve, (torch.ones(2, 2), torch.ones(2, 2, dtype=torch.int64))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    function, args = REFUSED[name]
    expected = outcome(function, *args)[1]
    assert expected is not None
    assert_same_error(outcome(function, *to_device(args))[1], expected)


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16, torch.int64), ids=str)
def test_refused_dtypes(dtype: torch.dtype) -> None:
    a = torch.eye(3).to(dtype)
    functions: tuple[Function, ...] = (linalg.cholesky, torch.cholesky_inverse, linalg.lu_factor, linalg.inv)
    functions += (linalg.det, linalg.slogdet, linalg.qr, torch.geqrf, linalg.lu)
    functions += (lambda a: torch.cholesky_solve(a, a), lambda a: linalg.solve(a, a))
    functions += (lambda a: linalg.solve_triangular(a, a, upper=True), lambda a: linalg.householder_product(a, a[0]))
    functions += (lambda a: torch.ormqr(a, a[0], a), lambda a: torch.triangular_solve(a, a))
    functions += (lambda a: linalg.lu_solve(a, torch.ones(3, dtype=torch.int32, device=a.device), a),)
    for index, function in enumerate(functions):
        expected = outcome(function, a)[1]
        assert expected is not None
        assert_same_error(outcome(function, to_device(a))[1], expected, str(index))


@pytest.mark.parametrize("shape", ((0, 0), (2, 0, 0), (0, 3, 3)), ids=str)
def test_empty(shape: tuple[int, ...]) -> None:
    a = torch.zeros(shape)
    for function in (*SQUARE.values(), *POSITIVE.values(), lambda a: linalg.solve(a, a)):
        expected = function(a)
        assert_same(run_on_device(function, to_device(a), dispatches=None, waits=None), expected, str(shape))
    for function in (linalg.qr, torch.geqrf, lambda a: tuple(linalg.lu(a)), lambda a: linalg.qr(a, mode="complete")):
        for rectangle in (torch.zeros(3, 0), torch.zeros(0, 3)):
            expected = function(rectangle)
            actual = run_on_device(function, to_device(rectangle), dispatches=None)
            assert_same(tuple(actual), tuple(expected), str(rectangle.shape))


def test_out() -> None:
    a = square(2, 5)
    b = sides(2, 5, count=3)
    calls: tuple[tuple[Function, tuple[Any, ...], int], ...] = (
        (linalg.inv, (a,), 1),
        (linalg.solve, (a, b), 1),
        (linalg.cholesky, (positive(2, 5),), 1),
        (torch.cholesky_inverse, (triangular(2, 5),), 1),
        (linalg.qr, (a,), 2),
        (linalg.lu, (a,), 3),
        (torch.geqrf, (a,), 2),
        (linalg.det, (a,), 1),
    )
    for function, args, count in calls:
        results = function(*args)
        results = results if count > 1 else (results,)
        # of another layout, and to be resized
        for make_out in (
            lambda x: torch.zeros((*x.shape, 2))[..., 0] if x.dim() else torch.zeros(()),
            lambda x: torch.zeros(x.shape),
            lambda x: torch.zeros(0),
        ):
            here = [make_out(x) for x in results]
            there = to_device(here)
            function(*args, out=here if count > 1 else here[0])
            with on_device(waits=None):
                function(*to_device(args), out=there if count > 1 else there[0])
            for one, other in zip(there, here, strict=True):
                assert_same(one, other, str(function), rtol=1e-4, atol=1e-4)


def test_inputs_are_left_alone() -> None:
    a = to_device(positive(40))
    before = a.clone()
    for function in (linalg.cholesky, linalg.lu, linalg.inv, linalg.qr, linalg.det, torch.geqrf):
        function(a)
        function(a.mT)
    assert torch.equal(a, before)
    out = to_device(square(40))
    expected = linalg.inv(out.cpu())
    linalg.inv(out, out=out)
    assert_same(out, expected, "in place", rtol=1e-4, atol=1e-4, strides=False)


@pytest.mark.parametrize("shape", ((1,), (2, 2), (3, 2, 5), (2, 40)), ids=str)
def test_matrix_exp(shape: tuple[int, ...]) -> None:
    a = square(*shape)
    for scale in (1e-3, 1.0, 6.0):
        scales = torch.linspace(0.1, 1, a.shape[0]).view(-1, *[1] * (a.dim() - 1)) if a.dim() > 2 else 1.0
        expected, actual = linalg.matrix_exp(a * scale * scales), linalg.matrix_exp(to_device(a * scale * scales))
        assert_same(actual, expected, str(scale), rtol=1e-4, atol=2e-5 * expected.abs().max().item())
    compare(linalg.matrix_exp, a)
    compare(linalg.matrix_exp, a.mT)


def test_matrix_exp_of_special_inputs() -> None:
    for a in (torch.zeros(3, 3), torch.full((2, 2), float("nan")), torch.zeros(2, 0, 0), torch.zeros(0, 2, 2)):
        # The number of squarings depends on the norms.
        assert_same(run_on_device(linalg.matrix_exp, to_device(a), waits=None), linalg.matrix_exp(a))
    halves = square(3, 4).to(torch.float16)
    expected = linalg.matrix_exp(halves.float()).half()  # in half precision the CPU's are not numbers
    assert_same(run_on_device(linalg.matrix_exp, to_device(halves), waits=None), expected, rtol=4e-3, atol=4e-3)


def symmetric(*shape: int) -> torch.Tensor:
    """Indefinite, with small elements on the diagonal, so that pivots of two rows occur."""
    a = randn(*shape, shape[-1])
    return a + a.mT - 1.9 * torch.diag_embed(a.diagonal(0, -2, -1))


@pytest.mark.parametrize("shape", ((1,), (4, 2), (2, 3, 5), (2, 40)), ids=str)
def test_ldl(shape: tuple[int, ...]) -> None:
    a, b = symmetric(*shape), sides(*shape)
    compare(lambda a: tuple(linalg.ldl_factor_ex(a)), a, gradient=False, tolerance=1e-3)
    factors, pivots = linalg.ldl_factor(a)
    assert shape[-1] < 5 or (pivots < 0).any()
    compare(linalg.ldl_solve, factors, pivots, b, gradient=False, tolerance=1e-3)
    compare(linalg.ldl_solve, factors, pivots, b[..., :1], gradient=False, tolerance=1e-3)


def test_ldl_of_zeros() -> None:
    a = torch.diag(torch.tensor([1.0, 0.0, 2.0, 0.0]))
    compare(lambda a: tuple(linalg.ldl_factor_ex(a)), a, gradient=False)
    expected = outcome(linalg.ldl_factor, a)[1]
    assert expected is not None
    assert_same_error(outcome(linalg.ldl_factor, to_device(a))[1], expected)


def test_tolerances_are_of_the_precision() -> None:
    a = square(3, 5)
    a[0, 0] = a[0, 1]
    a[1] = 0
    functions: tuple[Function, ...] = (
        linalg.pinv,
        lambda a: linalg.pinv(a @ a.mT, hermitian=True),
        linalg.matrix_rank,
        lambda a: linalg.matrix_rank(a, atol=0.5),
        lambda a: linalg.matrix_rank(a, rtol=0.5),
        lambda a: linalg.matrix_rank(a, 0.5),
        lambda a: linalg.matrix_rank(a, atol=torch.tensor([0.1, 0.2, 0.5], device=a.device)),
    )
    with fallback_mode("quiet"):
        for index, function in enumerate(functions):
            assert_same(function(to_device(a)), function(a), str(index), rtol=1e-3, atol=1e-3)
        for function in (linalg.pinv, linalg.matrix_rank):
            for bad in (torch.ones(3), torch.ones(2, 2, dtype=torch.int64), torch.ones(2, 2, dtype=torch.float16)):
                assert_same_error(outcome(function, to_device(bad))[1], outcome(function, bad)[1])


def test_what_stays_on_the_cpu_works() -> None:
    a = positive(3, 5)
    tests: dict[str, Function] = {
        "svdvals": linalg.svdvals,
        "pinv": linalg.pinv,
        "eigvalsh": linalg.eigvalsh,
        "lstsq": lambda a: linalg.lstsq(a, a[..., :2]).solution,
        "norm": lambda a: linalg.matrix_norm(a, "nuc"),
        "cond": linalg.cond,
    }
    for name, function in tests.items():
        here = a.clone().requires_grad_()
        there = to_device(a).requires_grad_()
        with fallback_mode("quiet"):
            expected, actual = function(here), function(there)
            expected.sum().backward()
            actual.sum().backward()
        assert_same(actual, expected, name, rtol=1e-3, atol=1e-3, strides=False)
        assert_same(there.grad, here.grad, name, rtol=1e-2, atol=1e-3, strides=False)


def test_low_ranks() -> None:
    """Random as they are, they find all of a matrix of that rank."""
    left, right = (torch.randn(shape, generator=torch.Generator().manual_seed(0)) for shape in ((9, 2), (2, 7)))
    a = left @ right
    with fallback_mode("quiet"):
        for function in (torch.svd_lowrank, lambda a: torch.pca_lowrank(a, center=False)):
            u, s, v = function(to_device(a))
            assert_same(u @ torch.diag(s) @ v.mT, a, rtol=1e-4, atol=1e-4)
