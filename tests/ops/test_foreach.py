"""_foreach_ ops against the CPU's, and how few dispatches many tensors take."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn

from tests.support import DEVICE, FLOATS, assert_same, name_of, on_device, outcome, to_device

Tensors = list[torch.Tensor]


def lists(dtype: torch.dtype, seed: int) -> Tensors:
    """Sizes that are and are not multiples of four, a 0-d, an empty and a transposed tensor, two of one storage."""
    generator = torch.Generator().manual_seed(seed)
    made = [torch.rand(shape, generator=generator) + 0.5 for shape in ((4, 5), (7,), (), (0, 3), (1,), (33, 3))]
    flat = torch.rand(48, generator=generator) + 0.5
    return [*(x.to(dtype) for x in made), made[0].to(dtype).t(), *flat.to(dtype).split(24)]


def numbers_in(tensors: Tensors) -> Tensors:
    """One for each tensor, in memory of its own."""
    return [x.mean() if x.numel() else tensors[2].clone() for x in tensors]


NUMBERS = [0.5, -1.25, 3.0, 2.0, 0.75, -2.0, 1.5, 0.25, 4.0]

CALLS: dict[str, Callable[[Tensors, Tensors, Tensors], Any]] = {
    "add": lambda a, b, c: torch._foreach_add(a, b),
    "add alpha": lambda a, b, c: torch._foreach_add(a, b, alpha=-0.3),
    "add number": lambda a, b, c: torch._foreach_add(a, 0.7),
    "add numbers": lambda a, b, c: torch._foreach_add(a, NUMBERS),
    "add tensor": lambda a, b, c: torch._foreach_add(a, c[2], alpha=2),
    "sub": lambda a, b, c: torch._foreach_sub(a, b, alpha=3),
    "sub number": lambda a, b, c: torch._foreach_sub(a, 0.7),
    "mul": lambda a, b, c: torch._foreach_mul(a, b),
    "mul number": lambda a, b, c: torch._foreach_mul(a, 0.7),
    "mul int": lambda a, b, c: torch._foreach_mul(a, 3),
    "mul numbers": lambda a, b, c: torch._foreach_mul(a, NUMBERS),
    "mul tensor": lambda a, b, c: torch._foreach_mul(a, c[2]),
    "div": lambda a, b, c: torch._foreach_div(a, b),
    "div number": lambda a, b, c: torch._foreach_div(a, 0.7),
    "div numbers": lambda a, b, c: torch._foreach_div(a, NUMBERS),
    "div tensor": lambda a, b, c: torch._foreach_div(a, c[2]),
    "maximum": lambda a, b, c: torch._foreach_maximum(a, b),
    "minimum number": lambda a, b, c: torch._foreach_minimum(a, 1),
    "clamp_min numbers": lambda a, b, c: torch._foreach_clamp_min(a, NUMBERS),
    "clamp_max": lambda a, b, c: torch._foreach_clamp_max(a, b),
    "addcmul": lambda a, b, c: torch._foreach_addcmul(a, b, c, value=-0.3),
    "addcmul numbers": lambda a, b, c: torch._foreach_addcmul(a, b, c, NUMBERS),
    "addcdiv": lambda a, b, c: torch._foreach_addcdiv(a, b, c, value=-0.3),
    "addcmul of 0-d": lambda a, b, c: torch._foreach_addcmul(a, b, numbers_in(c), value=0.3),
    "addcdiv numbers": lambda a, b, c: torch._foreach_addcdiv(a, b, c, NUMBERS),
    "lerp": lambda a, b, c: torch._foreach_lerp(a, b, c),
    "lerp number": lambda a, b, c: torch._foreach_lerp(a, b, 0.3),
    "lerp numbers": lambda a, b, c: torch._foreach_lerp(a, b, [abs(x) / 4 for x in NUMBERS]),
    "sqrt": lambda a, b, c: torch._foreach_sqrt(a),
    "rsqrt": lambda a, b, c: torch._foreach_rsqrt(a),
    "neg": lambda a, b, c: torch._foreach_neg(a),
    "abs": lambda a, b, c: torch._foreach_abs(a),
    "sign": lambda a, b, c: torch._foreach_sign(a),
    "reciprocal": lambda a, b, c: torch._foreach_reciprocal(a),
    "exp": lambda a, b, c: torch._foreach_exp(a),
    "pow square": lambda a, b, c: torch._foreach_pow(a, 2),
    "pow root": lambda a, b, c: torch._foreach_pow(a, 0.5),
    "pow number": lambda a, b, c: torch._foreach_pow(a, -0.75),
    "pow_ number": lambda a, b, c: torch._foreach_pow_(a, 1.5),
    "pow": lambda a, b, c: torch._foreach_pow(a, b),
    "pow of a number": lambda a, b, c: torch._foreach_pow(0.9, a),
    "pow of one": lambda a, b, c: torch._foreach_pow(1, a),
    "mul by numbers of the device": lambda a, b, c: torch._foreach_mul(a, numbers_in(b)),
    "numbers of the device by tensors": lambda a, b, c: torch._foreach_div(numbers_in(b), a),
    "div_ by numbers of the device": lambda a, b, c: torch._foreach_div_(a, numbers_in(b)),
    "add numbers of the device": lambda a, b, c: torch._foreach_add(a, numbers_in(b), alpha=0.7),
    "addcmul_ of numbers of the device": lambda a, b, c: torch._foreach_addcmul_(a, numbers_in(b), c, value=0.3),
    "norm": lambda a, b, c: torch._foreach_norm(a),
    "norm 1": lambda a, b, c: torch._foreach_norm(a, 1),
    "norm inf": lambda a, b, c: torch._foreach_norm(a[:3] + a[4:], torch.inf),
    "norm 3": lambda a, b, c: torch._foreach_norm(a, 3),
    "add_": lambda a, b, c: torch._foreach_add_(a, b),
    "mul_ number": lambda a, b, c: torch._foreach_mul_(a, 0.7),
    "mul_ by itself": lambda a, b, c: torch._foreach_mul_(a, a),
    "sqrt_": lambda a, b, c: torch._foreach_sqrt_(a),
    "lerp_": lambda a, b, c: torch._foreach_lerp_(a, b, 0.9),
    "addcdiv_": lambda a, b, c: torch._foreach_addcdiv_(a, b, c, NUMBERS),
    "zero_": lambda a, b, c: torch._foreach_zero_(a),
    "copy_": lambda a, b, c: torch._foreach_copy_(a, b),
    "one tensor": lambda a, b, c: torch._foreach_add_(a[:1], b[:1]),
    "the same tensor twice": lambda a, b, c: torch._foreach_add_([a[0], a[0]], [b[0], c[0]]),
}
TOLERANCES = {torch.float32: 3e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize("name", CALLS)
def test_against_the_cpu(name: str, dtype: torch.dtype) -> None:
    here = [lists(dtype, seed) for seed in (1, 2, 3)]
    there = to_device(here)
    expected = CALLS[name](*here)
    with on_device():
        actual = CALLS[name](*there)
    tolerance = {"rtol": TOLERANCES[dtype], "atol": TOLERANCES[dtype]}
    for one, other in zip(actual or there[0], expected or here[0], strict=True):
        assert_same(one, other, name, **tolerance)


def test_lists_that_are_not_alike() -> None:
    """Mixed dtypes, layouts, shapes that broadcast, integers: PyTorch's own loop, with the CPU's results and errors."""
    x, y = torch.ones(4, 5), torch.arange(20.0).view(5, 4).t()
    for call in (
        lambda d: torch._foreach_add([x.to(d), x.half().to(d)], [y.to(d), y.to(d)]),
        lambda d: torch._foreach_mul([x.to(d)], [torch.ones(5, device=d)]),
        lambda d: torch._foreach_mul([x.int().to(d)], 2.5),
        lambda d: torch._foreach_add([x.int().to(d)], 2),
        lambda d: torch._foreach_add([x.to(d)], [x.to(d), x.to(d)]),
        lambda d: torch._foreach_add_([x.half().to(d)], [x.to(d)]),
        lambda d: torch._foreach_add([x.to(d)], [1.0, 2.0]),
    ):
        expected, refused = outcome(call, "cpu")
        actual, error = outcome(call, DEVICE)
        assert type(error) is type(refused)
        if refused is None:
            assert_same(list(actual), list(expected))


def test_results_do_not_move_with_each_other() -> None:
    first, second = torch._foreach_mul([torch.ones(3, device=DEVICE), torch.ones(3, device=DEVICE)], 2)
    version = second._version
    first.zero_()
    assert second._version == version
    assert second.tolist() == [2.0] * 3
    first.resize_(9).fill_(1)
    assert second.tolist() == [2.0] * 3
    assert first.untyped_storage().data_ptr() != second.untyped_storage().data_ptr()


def test_gradients() -> None:
    x, y = (torch.rand(3, device=DEVICE, requires_grad=True) for _ in range(2))
    (torch._foreach_mul([x, y], [y, y])[0].sum() + torch._foreach_sqrt([x, y])[1].sum()).backward()
    assert_same(x.grad, y.detach().cpu())


# How many dispatches


def parameters(count: int = 100) -> list[nn.Parameter]:
    made = [nn.Parameter(torch.rand(5 + number % 7, 3, device=DEVICE)) for number in range(count)]
    for parameter in made:
        parameter.grad = torch.rand_like(parameter)
    return made


# Parameters, states and intermediate results share buffers; gradients, new in every step, have buffers of their own:
# nine of them in a launch of ten bindings.
STEPS: dict[str, tuple[Callable[[list[nn.Parameter]], Callable[[], Any]], int]] = {
    "zero_": (lambda p: lambda: torch._foreach_zero_(p), 1),
    "lerp_": (lambda p: lambda: torch._foreach_lerp_(p, [x.grad for x in p], 0.1), 12),
    "zero_grad": (lambda p: lambda: torch.optim.SGD(p, 0.1).zero_grad(set_to_none=False), 1),
    "zero_grad, fused": (lambda p: lambda: torch.optim.Adam(p, fused=True).zero_grad(set_to_none=False), 1),
    "zero_grad of a module": (lambda p: lambda: nn.ParameterList(p).zero_grad(set_to_none=False), 1),
    "clip_grad_norm_": (lambda p: lambda: nn.utils.clip_grad_norm_(p, 1.0), 30),
    "SGD": (lambda p: torch.optim.SGD(p, 0.1).step, 12),
    "SGD, momentum": (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9).step, 14),
    "SGD, fused": (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, fused=True).step, 12),
    "Adam": (lambda p: torch.optim.Adam(p).step, 29),
    "AdamW": (lambda p: torch.optim.AdamW(p).step, 30),
    "AdamW, capturable": (lambda p: torch.optim.AdamW(p, capturable=True).step, 42),
    "NAdam, capturable": (lambda p: torch.optim.NAdam(p, capturable=True).step, 67),
    "ASGD, capturable": (lambda p: torch.optim.ASGD(p, capturable=True).step, 27),
    "AdamW, fused": (lambda p: torch.optim.AdamW(p, fused=True).step, 13),
    "AdamW, AMSGrad, fused": (lambda p: torch.optim.AdamW(p, fused=True, amsgrad=True).step, 13),
}


@pytest.mark.parametrize("name", STEPS)
def test_dispatches(name: str) -> None:
    make, most = STEPS[name]
    if torch.webgpu.get_device_properties().limits["maxStorageBuffersPerShaderStage"] < 10:
        most = most * 9 // 7 + 2
    given = parameters()
    step = make(given)
    with torch.no_grad():
        step()
        before = torch.webgpu.memory_stats()
        with on_device():
            step()
    after = torch.webgpu.memory_stats()
    used = after["dispatches"] - before["dispatches"]
    assert used <= most, f"{used} dispatches, more than {most}"


class Mine(torch.optim.Optimizer):
    """Somebody's own, which knows nothing of foreach."""

    def __init__(self, given: Any) -> None:
        super().__init__(given, {"rate": 0.1})


ZEROED: dict[str, Callable[[list[nn.Parameter]], Any]] = {
    "optimizer": lambda p: torch.optim.AdamW([{"params": p[:3]}, {"params": p[3:], "lr": 0.1}]),
    "one at a time": lambda p: torch.optim.SGD(p, foreach=False),
    "of one's own": Mine,
    "module": lambda p: nn.ParameterList(p),
}


@pytest.mark.parametrize("name", ZEROED)
def test_gradients_set_to_zero(name: str) -> None:
    """Gradients stay the tensors they are, become zeros without a history, and None stays None."""

    def zeroed(device: str) -> Tensors:
        shapes = ((4, 5), (7,), (3, 2), (), (0, 3), (2, 3, 4, 4), (6,))
        given = [nn.Parameter(torch.ones(shape, device=device)) for shape in shapes]
        given += [nn.Parameter(torch.ones(3, dtype=torch.float16, device=device))]
        for parameter in given:
            parameter.grad = torch.ones_like(parameter)
        given[0].grad = (given[0] * 2).clone()
        given[1].grad.requires_grad_()
        given[2].grad = given[2].grad.to_sparse()
        given[5].grad = given[5].grad.to(memory_format=torch.channels_last)
        given[6].grad = None
        before = [parameter.grad for parameter in given]
        ZEROED[name](given).zero_grad(set_to_none=False)
        assert all(parameter.grad is grad for parameter, grad in zip(given, before, strict=True))
        present = [grad for grad in before if grad is not None]
        assert len(present) == len(given) - 1
        assert not any(grad.requires_grad for grad in present)
        return [grad.to_dense() for grad in present]

    with on_device(waits=1):  # to_sparse() counts
        there = zeroed(DEVICE)
    assert_same(there, zeroed("cpu"))


def test_foreach_false_takes_them_one_by_one() -> None:
    given = parameters(5)
    with on_device(dispatches=5):
        torch.optim.SGD(given, foreach=False).zero_grad(set_to_none=False)
    mixed = [*given, nn.Parameter(torch.ones(2))]
    mixed[-1].grad = torch.ones(2)
    with on_device(dispatches=5):
        torch.optim.SGD(mixed).zero_grad(set_to_none=False)
    assert [parameter.grad.count_nonzero().item() for parameter in mixed] == [0] * 6


@pytest.mark.parametrize("make", (torch.optim.SGD, torch.optim.AdamW))
def test_a_step_copies_nothing(make: Any) -> None:
    """Tensors are gathered once: later steps find them where they are, though gradients are new ones."""
    given = parameters(20)
    optimizer = make(given, 0.1, foreach=True)
    for _ in range(3):
        optimizer.step()
        for parameter in given:
            parameter.grad = torch.rand_like(parameter)
    before = torch.webgpu.memory_stats()["copies"]
    optimizer.step()
    assert torch.webgpu.memory_stats()["copies"] == before


# Tensors that share buffers


def gathered(count: int = 6, size: int = 40) -> Tensors:
    made = [torch.full((size,), float(number), device=DEVICE) for number in range(count)]
    torch._foreach_add_(made, 0.0)
    return made


def test_gathered_tensors_are_like_others() -> None:
    """Views, addresses, ops that read some and write others, copies, resizing."""
    made = [torch.full((40,), float(number), device=DEVICE) for number in range(6)]
    views, addresses = [x[4:8] for x in made], [x.data_ptr() for x in made]
    with on_device():
        torch._foreach_add_(made, 1.0)
    assert [x.data_ptr() for x in made] == addresses
    assert [x.tolist() for x in views] == [[number + 1.0] * 4 for number in range(6)]
    with on_device():
        made[0].add_(made[1]).mul_(made[2])
        made[3].copy_(made[4])
        made[5][8:].copy_(made[4][:32])
        torch.add(made[1], made[2], out=made[4])
        torch._foreach_lerp_(made[1:3], [made[2][:40], made[1]], 1.0)
        total = torch.cat(made).sum()
    rest = [9.0] * 40, [3.0] * 40, [3.0] * 40, [5.0] * 40, [5.0] * 40, [6.0] * 8 + [5.0] * 32
    assert [x.tolist() for x in made] == list(rest)
    assert total.item() == sum(map(sum, rest))
    made[0].resize_(100).fill_(2)
    assert made[0].tolist() == [2.0] * 100
    assert made[1].tolist() == rest[1]


def test_large_and_small_tensors_in_turn() -> None:
    """They cannot be in one launch, and so are in two, not in one for each change."""
    large, small = [[torch.ones(n, device=DEVICE) for _ in range(4)] for n in (2_000_000, 10)]
    mixed = [x for pair in zip(large, small, strict=True) for x in pair]
    torch._foreach_addcdiv_(mixed, [x.clone() for x in mixed], mixed[2:] + mixed[:2])
    others = [torch.full_like(x, 2.0) for x in mixed]
    with on_device(dispatches=2):
        torch._foreach_addcdiv_(mixed, others, others)
    # the last two divided by the first two as these were afterwards
    assert [x.tolist()[-3:] for x in mixed] == [[3.0] * 3] * 6 + [[2.5] * 3] * 2


def test_memory_of_gathered_tensors_is_counted_and_given_back() -> None:
    torch.webgpu.synchronize()
    torch.webgpu.empty_cache()
    allocated, reserved = torch.webgpu.memory_allocated(), torch.webgpu.memory_reserved()
    for _ in range(3):
        made = gathered(50, 1000)
        assert torch.webgpu.memory_allocated() - allocated == 50 * 4096
        del made
        assert torch.webgpu.memory_allocated() == allocated
    torch.webgpu.empty_cache()
    assert torch.webgpu.memory_reserved() == reserved


def test_lists_of_two_threads() -> None:
    shared = [torch.zeros(20, device=DEVICE) for _ in range(50)]
    own = [[torch.zeros(20, device=DEVICE) for _ in range(50)] for _ in range(2)]

    def work(number: int) -> None:
        for _ in range(20):
            torch._foreach_add_(own[number], 1.0)
            torch._foreach_add_(shared, 1.0)
            own[number] = [x.clone() for x in own[number]]

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(work, range(2)))
    assert_same(torch.stack(own[0] + own[1]), torch.full((100, 20), 20.0))
    assert_same(torch.stack(shared), torch.full((50, 20), 40.0))


def test_parameters_of_one_storage_take_few_dispatches() -> None:
    """As where a model's weights, gradients and states are flat: the limit is the table in the parameters."""
    flat = torch.rand(4000, device=DEVICE)
    parts, gradients = list(flat.split(40)), list(torch.rand(4000, device=DEVICE).split(40))
    torch._foreach_lerp_(parts, gradients, 0.5)
    with on_device(dispatches=1):
        torch._foreach_lerp_(parts, gradients, 0.5)
