"""The pair of processes that the tests of this folder share; one that a failed test broke is replaced."""

from collections.abc import Iterator

import pytest

from tests.distributed.pair import Pair


@pytest.fixture(scope="session")
def _pairs() -> Iterator[list[Pair]]:
    pairs: list[Pair] = []
    yield pairs
    for pair in pairs:
        if pair.alive:
            pair.close()


@pytest.fixture
def pair(_pairs: list[Pair]) -> Pair:
    if not _pairs or not _pairs[-1].alive:
        _pairs.append(Pair())
    return _pairs[-1]
