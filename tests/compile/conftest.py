"""The same numbers in every run, and nothing of earlier ones."""

import os

# Inductor's pool of compilers imports torch in processes of its own; kernels of the device are compiled in this one.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import pytest
import torch


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    torch.manual_seed(0)
