"""The operations that all programs are measured with.

Each program's own environment imports this file: it needs the standard library and NumPy alone.

Every operation maps a tensor to one of the same shape, so that it can be repeated on its own result: the time of one
operation is a difference of two chains, in which the transfers between host and device cancel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HEADS = 8


@dataclass(frozen=True)
class Work:
    name: str
    kind: str  # the method of a program that does it
    x: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...] = ()
    bar: float = 4.0  # this project has to be so many times faster than each other program

    def arrays(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Numbers of about the same size after every operation, so that no chain overflows."""
        random = np.random.default_rng(0)
        x = random.standard_normal(self.x, np.float32)
        weights = []
        for shape in self.weights:
            inputs = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
            scale = 1 / np.sqrt(inputs) if len(shape) > 1 else 0.1
            weights.append(random.standard_normal(shape, np.float32) * np.float32(scale))
        return x, weights


WORK = (
    Work("add of 1k", "add", (1024,), ((1024,),), bar=2.0),
    Work("add of 4M", "add", (4096, 1024), ((1024,),)),
    Work("gelu of 4M", "gelu", (4096, 1024)),
    Work("softmax 2048x1024", "softmax", (2048, 1024)),
    Work("layer_norm 2048x1024", "layer_norm", (2048, 1024), ((1024,), (1024,))),
    Work("column means 2048x2048", "minus_mean", (2048, 2048)),
    Work("matmul 512", "matmul", (512, 512), ((512, 512),)),
    Work("matmul 1024", "matmul", (1024, 1024), ((1024, 1024),)),
    Work("vector times 2048x2048", "matmul", (1, 2048), ((2048, 2048),)),
    Work("MLP 32x256, gelu", "mlp", (32, 256), ((256, 1024), (1024,), (1024, 256), (256,))),
    Work("conv 3x3 of 64 channels 56x56", "conv", (1, 64, 56, 56), ((64, 64, 3, 3),)),
    Work("attention 512x512, 8 heads", "attention", (1, 512, 512)),
)
