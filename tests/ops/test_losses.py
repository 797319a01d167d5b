"""Loss functions against the CPU: every reduction, weights, classes to ignore, and gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.support import (
    DEVICE,
    FLOATS,
    assert_same,
    assert_same_error,
    name_of,
    on_device,
    outcome,
    run_on_device,
    to_device,
)

REDUCTIONS = ("none", "mean", "sum")
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
HALF = {torch.float16: {"rtol": 5e-3, "atol": 5e-3}, torch.bfloat16: {"rtol": 4e-2, "atol": 4e-2}}


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def rand(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed + sum(shape))).mul(0.9).add(0.05)


def labels(classes: int, *shape: int, low: int = 0) -> torch.Tensor:
    return torch.randint(low, classes, shape, generator=torch.Generator().manual_seed(classes))


def signs(*shape: int) -> torch.Tensor:
    return labels(2, *shape) * 2 - 1


def learns(x: torch.Tensor) -> bool:
    """Targets of one and minus one are labels, whatever their dtype."""
    return x.is_floating_point() and not bool((x.abs() == 1).all())


def check(
    call: Callable[..., torch.Tensor],
    *args: Any,
    close: dict[str, float] = CLOSE,
    waits: int | None = 0,
    **kwargs: Any,
) -> None:
    """The loss, and the gradients of the floating arguments that have one; `call` takes them positionally."""
    host = [x.detach().requires_grad_(learns(x)) for x in args]
    device = [x.requires_grad_(learns(x)) for x in to_device([x.detach() for x in args])]
    expected = call(*host, **kwargs)
    actual = run_on_device(call, *device, waits=waits, **kwargs)
    assert_same(actual, expected, **close)
    inputs = [x for x in host if x.requires_grad]
    seed = randn(*expected.shape, seed=3).to(expected.dtype)
    wanted, refused = outcome(torch.autograd.grad, expected, inputs, seed, allow_unused=True)
    if refused is not None:
        return
    with on_device(None):
        found = torch.autograd.grad(actual, [x for x in device if x.requires_grad], to_device(seed), allow_unused=True)
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if other is not None:
            assert_same(one, other, "gradient", strides=False, **close)


# Losses of pairs


def waits_of(name: str) -> int:
    return int(name == "gaussian_nll")  # F.gaussian_nll_loss looks for negative variances


PAIRS: dict[str, tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "mse": (F.mse_loss, (randn(4, 9), randn(4, 9, seed=1))),
    "l1": (F.l1_loss, (randn(4, 9), randn(4, 9, seed=1))),
    "smooth_l1": (F.smooth_l1_loss, (randn(4, 9), randn(4, 9, seed=1))),
    "huber": (lambda *a, **k: F.huber_loss(*a, delta=0.7, **k), (randn(4, 9), randn(4, 9, seed=1))),
    "binary_cross_entropy": (F.binary_cross_entropy, (rand(4, 9), rand(4, 9, seed=1))),
    "with_logits": (F.binary_cross_entropy_with_logits, (randn(4, 9) * 20, rand(4, 9, seed=1))),
    "kl_div": (F.kl_div, (randn(4, 9).log_softmax(1), rand(4, 9))),
    "kl_div of logs": (lambda *a, **k: F.kl_div(*a, log_target=True, **k), (randn(4, 9), randn(4, 9, seed=1))),
    "soft_margin": (F.soft_margin_loss, (randn(4, 9) * 5, signs(4, 9).float())),
    "hinge_embedding": (F.hinge_embedding_loss, (randn(4, 9), signs(4, 9).float())),
    "poisson_nll": (lambda *a, **k: F.poisson_nll_loss(*a, full=True, **k), (randn(4, 9), rand(4, 9) * 5)),
    "gaussian_nll": (F.gaussian_nll_loss, (randn(4, 9), randn(4, 9, seed=1), rand(4, 9))),
    "triplet": (F.triplet_margin_loss, (randn(4, 9), randn(4, 9, seed=1), randn(4, 9, seed=2))),
    "cosine_embedding": (F.cosine_embedding_loss, (randn(4, 9), randn(4, 9, seed=1), signs(4))),
    "margin_ranking": (F.margin_ranking_loss, (randn(9), randn(9, seed=1), signs(9))),
    "multilabel_soft_margin": (F.multilabel_soft_margin_loss, (randn(4, 9), labels(2, 4, 9).float())),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str, reduction: str) -> None:
    call, args = PAIRS[name]
    check(call, *args, reduction=reduction, waits=waits_of(name))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy_with_weights(reduction: str) -> None:
    weight, positive = rand(4, 9, seed=5), rand(9, seed=6)
    check(
        lambda *a: F.binary_cross_entropy(a[0], a[1], weight.to(a[0].device), reduction=reduction),
        rand(4, 9),
        rand(4, 9, seed=1),
    )
    check(
        lambda *a: F.binary_cross_entropy_with_logits(
            a[0], a[1], weight.to(a[0].device), pos_weight=positive.to(a[0].device), reduction=reduction
        ),
        *(randn(4, 9), rand(4, 9, seed=1)),
    )
    ends = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5])
    check(
        F.binary_cross_entropy,
        ends,
        torch.tensor([0.0, 1.0, 1.0, 0.0, 0.5]),
        reduction=reduction,
        close={"rtol": 1e-4, "atol": 1e-4},
    )


# Losses by class

SCORES = {
    "samples": (lambda: randn(7, 5), lambda: labels(5, 7)),
    "one sample": (lambda: randn(5), lambda: labels(5, 1)[0]),
    "images": (lambda: randn(2, 5, 3, 4), lambda: labels(5, 2, 3, 4)),
    "channels last": (lambda: randn(2, 3, 4, 5).permute(0, 3, 1, 2), lambda: labels(5, 2, 3, 4)),
    "volumes": (lambda: randn(2, 5, 2, 3, 2), lambda: labels(5, 2, 2, 3, 2)),
    "strided": (lambda: randn(5, 14).t()[::2], lambda: labels(5, 14)[::2]),
    "many": (lambda: randn(3000, 4), lambda: labels(4, 3000)),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", SCORES)
def test_nll_loss(name: str, reduction: str) -> None:
    scores, target = (make() for make in SCORES[name])
    weight = rand(scores.size(1 if scores.dim() > 1 else 0), seed=9)
    check(F.nll_loss, scores, target, reduction=reduction)
    check(F.nll_loss, scores, target, reduction=reduction, ignore_index=int(target.flatten()[0]))
    for ignored in (-100, 1):
        check(
            lambda x, t: F.nll_loss(x, t, weight.to(x.device), ignore_index=ignored, reduction=reduction),  # noqa: B023
            *(scores, target),
        )


@pytest.mark.parametrize("dtype", FLOATS[1:], ids=name_of)
@pytest.mark.parametrize("name", ["samples", "images"])
def test_nll_loss_half(name: str, dtype: torch.dtype) -> None:
    scores, target = (make() for make in SCORES[name])
    for reduction in REDUCTIONS:
        check(F.nll_loss, scores.to(dtype), target, reduction=reduction, close=HALF[dtype])


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy(reduction: str) -> None:
    weight = rand(5, seed=9)
    for make_scores, make_target in SCORES.values():
        scores, target = make_scores(), make_target()
        check(F.cross_entropy, scores, target, reduction=reduction, label_smoothing=0.2)
        check(lambda x, t: F.cross_entropy(x, t, ignore_index=1, reduction=reduction), scores, target)
        if scores.size(1 if scores.dim() > 1 else 0) == 5:
            check(
                lambda x, t: F.cross_entropy(x, t, weight.to(x.device), label_smoothing=0.1, reduction=reduction),
                *(scores, target),
                waits=None if reduction == "mean" else 0,  # PyTorch selects the weights of what is not ignored
            )
    check(F.cross_entropy, randn(7, 5), rand(7, 5), reduction=reduction)
    check(lambda x, t: F.cross_entropy(x, t, weight.to(x.device), reduction=reduction), randn(7, 5), rand(7, 5))


def test_of_nothing() -> None:
    for reduction in REDUCTIONS:
        check(F.nll_loss, randn(0, 5), labels(5, 0), reduction=reduction)
        check(F.nll_loss, randn(0, 5, 3, 3), labels(5, 0, 3, 3), reduction=reduction)
        check(F.nll_loss, randn(3, 5), torch.full((3,), -100), reduction=reduction)


@pytest.mark.parametrize("shape", [(4, 5), (2, 5, 3, 3)], ids=["samples", "images"])
def test_targets_out_of_range(shape: tuple[int, ...]) -> None:
    scores = to_device(randn(*shape))
    for wrong in (5, -1, 2**40):
        target = labels(5, shape[0], *shape[2:])
        target.view(-1)[1] = wrong
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds(.|\n)*nll_loss"):
            F.nll_loss(scores, to_device(target)).item()
    assert F.nll_loss(scores, to_device(labels(5, shape[0], *shape[2:]))).isfinite().item()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_multi_margin_loss(reduction: str) -> None:
    weight = rand(5, seed=9)
    for scores, target in (
        (randn(7, 5), labels(5, 7)),
        (randn(5), labels(5, 1)),
        (randn(5, 14).t()[::2], labels(5, 7)),
    ):
        for p in (1, 2):
            check(F.multi_margin_loss, scores, target, p=p, margin=0.7, reduction=reduction)
            check(
                lambda x, t: F.multi_margin_loss(x, t, p=p, weight=weight.to(x.device), reduction=reduction),  # noqa: B023
                *(scores, target),
            )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_multilabel_margin_loss(reduction: str) -> None:
    target = torch.tensor([[1, 3, -1, 0, 2], [0, -1, -1, 2, 1], [-1, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 2, 0, -1, 1]])
    check(F.multilabel_margin_loss, randn(5, 5), target, reduction=reduction)
    check(F.multilabel_margin_loss, randn(5), target[0], reduction=reduction)


@pytest.mark.parametrize(("loss", "target"), ((F.multi_margin_loss, (0,)), (F.multilabel_margin_loss, (0, 3))))
def test_margin_losses_of_an_empty_batch(loss: Callable[..., torch.Tensor], target: tuple[int, ...]) -> None:
    """The CPU leaves some of these uninitialised."""
    scores, labels = (
        torch.empty(0, 3, device=DEVICE, requires_grad=True),
        torch.empty(target, dtype=torch.int64, device=DEVICE),
    )
    assert loss(scores, labels, reduction="none").shape == (0,)
    assert loss(scores, labels, reduction="sum").item() == 0
    assert loss(scores, labels, reduction="mean").isnan().item()
    loss(scores, labels, reduction="sum").backward()
    assert scores.grad is not None
    assert scores.grad.shape == (0, 3)


@pytest.mark.parametrize("dtype", FLOATS[1:], ids=name_of)
@pytest.mark.parametrize("name", [name for name in PAIRS if name != "kl_div of logs"])
def test_pairs_half(name: str, dtype: torch.dtype) -> None:
    call, args = PAIRS[name]
    args = tuple(x.to(dtype) if x.is_floating_point() else x for x in args)
    expected, refused = outcome(call, *args)
    if refused is None:
        assert_same(run_on_device(call, *to_device(args), waits=waits_of(name)), expected, **HALF[dtype])


@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_ctc_loss(reduction: str, zero_infinity: bool) -> None:
    """Equal labels side by side, several blanks, targets in a row or in one piece, no labels, too little time."""
    scores, target = randn(12, 5, 6), labels(6, 5, 4, low=1)
    target[0] = 3
    lengths, sizes = torch.tensor([12, 10, 8, 12, 2]), torch.tensor([4, 3, 2, 0, 2 if reduction == "mean" else 4])
    joined = torch.cat([row[:size] for row, size in zip(target, sizes, strict=True)])
    for blank, given, kind in ((0, target, torch.int64), (5, joined, torch.int32), (0, joined, torch.int64)):
        results = []
        for device in ("cpu", DEVICE):
            leaf = scores.clone().to(device).requires_grad_()
            with contextlib.nullcontext() if device == "cpu" else on_device():
                loss = F.ctc_loss(
                    leaf.log_softmax(2),
                    (given % 5 if blank else given).to(device, kind),
                    tuple(lengths.tolist()),
                    tuple(sizes.tolist()),
                    blank,
                    reduction,
                    zero_infinity,
                )
                (loss * torch.arange(1.0, 1.0 + loss.numel()).to(device)).sum().backward()
            assert leaf.grad is not None
            results.append((loss, leaf.grad))
        assert_same(results[1][0], results[0][0], f"loss, blank {blank}", rtol=1e-5, atol=1e-5)
        assert_same(results[1][1], results[0][1], f"gradient, blank {blank}", strides=False, rtol=1e-4, atol=2e-5)


def test_ctc_loss_takes_lengths_and_targets_of_either_device() -> None:
    scores, target = randn(12, 3, 6).log_softmax(2), labels(6, 3, 4, low=1)
    lengths, sizes = torch.tensor([12, 10, 8]), torch.tensor([4, 3, 2])
    expected = F.ctc_loss(scores, target, lengths, sizes)
    for moved in ((target, lengths, sizes), to_device((target, lengths, sizes)), (to_device(target), lengths, sizes)):
        with on_device(waits=None) as results:
            results.append(F.ctc_loss(to_device(scores), *moved))
        assert_same(results[0], expected, **CLOSE)


def test_ctc_loss_refuses_what_the_cpu_refuses() -> None:
    scores, target = randn(4, 2, 5).log_softmax(2), labels(5, 2, 3, low=1)
    for arguments in (
        (scores, target, (4, 4), (3,)),
        (scores, target, (4,), (3, 3)),
        (scores, target, (5, 4), (3, 3)),
        (scores, target, (4, 4), (4, 3)),
        (scores, target, (4, 4), (-1, 3)),
        (scores, target.view(-1), (4, 4), (3, 2)),
        (scores, target, (4, 4), (3, 3), 5),
        (scores[:, :, :0], target, (4, 4), (3, 3)),
    ):
        expected = outcome(F.ctc_loss, *arguments)[1]
        assert expected is not None
        assert_same_error(outcome(F.ctc_loss, *to_device(arguments))[1], expected, str(arguments[2:]))


def test_errors() -> None:
    calls: list[tuple[Callable[..., Any], list[Any]]] = [
        (F.nll_loss, [randn(3, 5), labels(5, 4)]),
        (F.nll_loss, [randn(3, 5), labels(5, 3).float()]),
        (F.nll_loss, [randn(3, 5), labels(5, 3), randn(4)]),
        (F.nll_loss, [randn(3, 5, 2, 2), labels(5, 3, 2, 3)]),
        (F.nll_loss, [torch.ones(3, 5, dtype=torch.int64), labels(5, 3)]),
        (F.cross_entropy, [randn(3, 5), labels(5, 3, 2)]),
        (F.multi_margin_loss, [randn(3, 5), labels(5, 4)]),
        (F.multi_margin_loss, [randn(3, 5), labels(5, 3), 3]),
        (F.multi_margin_loss, [randn(3, 5), labels(5, 3), 1, 1.0, randn(4)]),
        (F.multilabel_margin_loss, [randn(3, 5), labels(5, 3, 4)]),
        (F.mse_loss, [torch.ones(3, dtype=torch.int64), torch.ones(3, dtype=torch.int64)]),
        (F.binary_cross_entropy, [rand(3), rand(4)]),
    ]
    for function, args in calls:
        actual, expected = outcome(function, *to_device(args))[1], outcome(function, *args)[1]
        assert expected is not None
        assert_same_error(actual, expected, f"{function.__name__} {args}")
