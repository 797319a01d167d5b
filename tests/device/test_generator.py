"""Generators: seeds, states, clones, forks. The numbers they lead to are tested with the ops that draw them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from tests.device.process import output_of
from tests.support import fallback_mode


@pytest.fixture(autouse=True)
def keep_the_default_state() -> Iterator[None]:
    with torch.random.fork_rng(device_type="webgpu"):
        yield


def generator(seed: int = 5, offset: int = 0) -> torch.Generator:
    made = torch.Generator(device="webgpu").manual_seed(seed)
    made.set_offset(offset)
    return made


# The default generator


def test_manual_seed() -> None:
    here = torch.initial_seed()
    torch.webgpu.manual_seed(12)
    assert torch.webgpu.initial_seed() == 12
    torch.webgpu.manual_seed_all(13)
    assert torch.webgpu.initial_seed() == 13
    assert torch.initial_seed() == here, "the CPU's is another"


def test_torchs_own_seed_reaches_it() -> None:
    torch.manual_seed(21)
    assert torch.webgpu.initial_seed() == torch.initial_seed() == 21
    assert torch.seed() == torch.webgpu.initial_seed()


def test_seed_is_fresh_each_time() -> None:
    seeds = {torch.webgpu.seed() for _ in range(5)}
    assert len(seeds) == 5
    assert torch.webgpu.initial_seed() in seeds


@pytest.mark.parametrize("seed", [0, 2**63 - 1, 2**64 - 1, -1])
def test_seeds_of_64_bits(seed: int) -> None:
    torch.webgpu.manual_seed(seed)
    assert torch.webgpu.initial_seed() == seed % 2**64
    assert torch.Generator().manual_seed(seed).initial_seed() == seed % 2**64, "as on the CPU"


def test_a_seed_of_more_bits_is_refused() -> None:
    torch.webgpu.manual_seed(3)
    with pytest.raises((RuntimeError, ValueError), match="Overflow"):
        torch.webgpu.manual_seed(2**64)
    assert torch.webgpu.initial_seed() == 3


def test_the_default_generator_is_one_object() -> None:
    (default,) = torch.webgpu.default_generators
    assert torch.webgpu.default_generators[0] is default
    assert default.device == torch.device("webgpu", 0)
    torch.webgpu.manual_seed(31)
    assert default.initial_seed() == 31
    default.manual_seed(32)
    assert torch.webgpu.initial_seed() == 32


def test_state_of_the_default_generator() -> None:
    torch.webgpu.manual_seed(41)
    state = torch.webgpu.get_rng_state()
    assert state.device.type == "cpu"
    assert state.dtype == torch.uint8
    torch.webgpu.manual_seed(42)
    assert not torch.equal(torch.webgpu.get_rng_state(), state)
    torch.webgpu.set_rng_state(state)
    assert torch.webgpu.initial_seed() == 41
    assert torch.equal(torch.webgpu.get_rng_state("webgpu:0"), state)


def test_a_state_taken_is_not_changed_by_what_follows() -> None:
    torch.webgpu.manual_seed(43)
    state = torch.webgpu.get_rng_state()
    kept = state.clone()
    torch.webgpu.manual_seed(44)
    assert torch.equal(state, kept)
    torch.webgpu.set_rng_state(state)
    state.zero_()
    assert torch.webgpu.initial_seed() == 43


def test_seeding_opens_nothing() -> None:
    script = """
    import torch
    first = torch.webgpu.initial_seed()
    torch.manual_seed(3); torch.webgpu.get_rng_state(); torch.Generator(device="webgpu").manual_seed(4)
    with torch.random.fork_rng(devices=[0], device_type="webgpu"): torch.manual_seed(5)
    print(first == torch.Generator().initial_seed(), torch.webgpu.initial_seed(), torch.webgpu.is_initialized())
    """
    assert output_of(script) == ["True 3 False"]


# Generators of one's own


def test_a_generator_has_its_own_seed() -> None:
    torch.webgpu.manual_seed(51)
    first, second = generator(1), generator(2)
    assert (first.initial_seed(), second.initial_seed(), torch.webgpu.initial_seed()) == (1, 2, 51)
    assert first.manual_seed(6) is first
    assert first.seed() == first.initial_seed() != 6


@pytest.mark.parametrize("device", ["webgpu", "webgpu:0", torch.device("webgpu", 0)], ids=str)
def test_the_device_of_a_generator(device: str | torch.device) -> None:
    made = torch.Generator(device=device)
    assert made.device == torch.device("webgpu", 0)
    assert made.initial_seed() == torch.Generator().initial_seed(), "starts as the CPU's does"


def test_a_generator_of_a_device_that_is_not_there() -> None:
    with pytest.raises(RuntimeError, match="invalid device ordinal 1"):
        torch.Generator(device="webgpu:1")


def test_state_holds_seed_and_offset() -> None:
    state = generator(61, offset=8).get_state()
    other = generator(62)
    assert other.set_state(state) is other
    assert (other.initial_seed(), other.get_offset()) == (61, 8)
    assert other.manual_seed(61).get_offset() == 0, "a seed starts again"


def test_equal_states_mean_equal_generators() -> None:
    assert torch.equal(generator(1, 4).get_state(), generator(1, 4).get_state())
    assert not torch.equal(generator(1, 4).get_state(), generator(1, 8).get_state())
    assert not torch.equal(generator(1, 4).get_state(), generator(2, 4).get_state())


def test_bad_states_are_refused_and_change_nothing() -> None:
    made = generator(71)
    size = made.get_state().numel()
    with pytest.raises(RuntimeError, match="wrong size"):
        made.set_state(torch.zeros(size - 1, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="wrong size"):
        made.set_state(torch.get_rng_state())
    with pytest.raises(TypeError, match="ByteTensor"):
        made.set_state(torch.zeros(size))
    with pytest.raises(TypeError, match="ByteTensor"):
        made.set_state(made.get_state().to("webgpu"))
    with pytest.raises(RuntimeError, match="contiguous"):
        made.set_state(torch.zeros(2 * size, dtype=torch.uint8)[::2])
    assert made.initial_seed() == 71


def test_clones_part_ways() -> None:
    made = generator(81, offset=4)
    for twin in (made.clone_state(), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert twin is not made
        assert twin.device == made.device
        assert (twin.initial_seed(), twin.get_offset()) == (81, 4)
        twin.manual_seed(82)
        assert made.initial_seed() == 81


# Forks


def test_fork_rng_restores_both_devices() -> None:
    torch.manual_seed(91)
    torch.webgpu.manual_seed(92)
    with torch.random.fork_rng(device_type="webgpu"):
        assert torch.webgpu.initial_seed() == 92, "goes on from the state outside"
        torch.manual_seed(93)
        assert torch.webgpu.initial_seed() == 93
    assert (torch.initial_seed(), torch.webgpu.initial_seed()) == (91, 92)


def test_fork_rng_restores_after_an_error() -> None:
    torch.webgpu.manual_seed(94)
    with pytest.raises(KeyError), torch.random.fork_rng(devices=[0], device_type="webgpu"):
        torch.webgpu.manual_seed(95)
        raise KeyError
    assert torch.webgpu.initial_seed() == 94


def test_fork_rng_can_be_off() -> None:
    torch.webgpu.manual_seed(96)
    with torch.random.fork_rng(enabled=False, device_type="webgpu"):
        torch.webgpu.manual_seed(97)
    assert torch.webgpu.initial_seed() == 97


def test_seed_all_is_fresh() -> None:
    torch.webgpu.manual_seed_all(3)
    torch.webgpu.seed_all()
    assert torch.webgpu.initial_seed() != 3


def test_states_of_all_devices() -> None:
    torch.webgpu.manual_seed(98)
    states = torch.webgpu.get_rng_state_all()
    assert [torch.equal(state, torch.webgpu.get_rng_state()) for state in states] == [True]
    torch.webgpu.manual_seed(99)
    torch.webgpu.set_rng_state_all(states)
    assert torch.webgpu.initial_seed() == 98


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("preserve", [True, False])
def test_checkpoints_recompute_with_the_same_numbers(reentrant: bool, preserve: bool) -> None:
    drawn: list[torch.Tensor] = []

    def block(x: torch.Tensor) -> torch.Tensor:
        mask = torch.nn.functional.dropout(torch.ones_like(x), 0.5)
        drawn.append(mask)
        return x * mask

    torch.manual_seed(101)
    x = torch.ones(1000, device="webgpu", requires_grad=True)
    y = checkpoint(block, x, use_reentrant=reentrant, preserve_rng_state=preserve)
    between = torch.rand(3, device="webgpu")
    state = torch.webgpu.get_rng_state()
    y.sum().backward()
    forward, recomputed = drawn
    assert torch.equal(recomputed, forward) == preserve
    if preserve:
        assert torch.equal(x.grad, y.detach()), "the gradient of the numbers of the forward"
        assert torch.equal(torch.webgpu.get_rng_state(), state), "what follows goes on from before the backward"
        assert not torch.equal(torch.rand(3, device="webgpu"), between)


# What a seed is for


def test_a_seed_repeats_the_numbers() -> None:
    with fallback_mode("quiet"):
        drawn = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            drawn.append(torch.rand(100, device="webgpu").cpu())
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_generators_that_share_a_state() -> None:
    """As activation checkpointing in compiled graphs uses them."""
    lent, (default,) = generator(11), torch.webgpu.default_generators
    torch.webgpu.manual_seed(7)
    before = default.graphsafe_get_state()
    default.graphsafe_set_state(lent)
    first = torch.rand(3, device="webgpu")
    default.graphsafe_set_state(before)
    assert torch.webgpu.initial_seed() == 7 and default.get_offset() == 0
    assert lent.get_offset() > 0, "what the default generator drew was taken from the one it was lent"
    torch.testing.assert_close(first, torch.rand(3, device="webgpu", generator=generator(11)), rtol=0, atol=0)
    clone = lent.clone_state()
    clone.manual_seed(1)
    assert lent.initial_seed() == 11
    with pytest.raises(ValueError, match="takes a generator of webgpu"):
        default.graphsafe_set_state(torch.Generator())
