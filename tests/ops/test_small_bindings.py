"""Files of tests with small bindings, so that every family splits its work or binds tensors in pages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.device.process import output_of

LIMIT = "TORCH_WEBGPU_TEST_BINDING_BYTES"

# A file of tests, the bytes that a binding holds, and tests whose tensors are larger than that, but for their rows in
# families that have no use for pages.
CHOSEN: dict[str, tuple[int, str]] = {
    "attention": (8192, "test_with_gradients or test_masks"),
    "convolution": (16384, "test_forward_and_gradients"),
    "distance": (8192, ""),
    "fused_optimizer": (1024, ""),
    "indexing": (1024, "test_reads or test_writes or test_gradients"),
    "matmul": (4096, "test_layouts"),
    "norm_layers": (8192, "test_layer_norm or test_group_norm or test_batch_norm"),
    "pooling": (262144, "test_large_rows"),
    "reduce": (2048, "test_layouts or test_first_index or test_accuracy"),
    "scan": (12288, "(test_sums or test_extrema or test_logcumsumexp) and float32"),
    "selection": (131072, "test_median_of_many or test_mode_of_long_rows"),
    "softmax": (49152, "test_forward_and_backward or test_rows_sum"),
    "sort": (12288, "(float32 or int16) and not one_launch and not rounds"),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_small_bindings(name: str) -> None:
    file = Path(__file__).with_name(f"test_{name}.py")
    limit, chosen = CHOSEN[name]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", file, "-n", "0", "-q", "-x", "-k", chosen],
        env=os.environ | {LIMIT: str(limit)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_limit_is_there() -> None:
    """What fits takes a launch, what does not takes more, or pages; what takes too many of them says so."""
    script = """
        import torch

        x = torch.arange(4096.0).to("webgpu")

        def dispatches(call):
            before = torch.webgpu.memory_stats()["dispatches"]
            call()
            return torch.webgpu.memory_stats()["dispatches"] - before

        print(dispatches(lambda: x[:512].add(1)), dispatches(lambda: x.add(1)))
        print(x.median().item(), x.view(64, 64).sum(1)[-1].item())
        try:
            torch.arange(1 << 18, device="webgpu").median()
        except RuntimeError as error:
            print(error)
    """
    sizes, values, refusal = output_of(script, **{LIMIT: "4096"})
    assert sizes == "1 4" and values == "2047.0 260064.0"
    assert "median: a tensor of 2097152 bytes takes more bindings than the adapter has" in refusal
    assert "maxStorageBufferBindingSize" in refusal


def test_long_launches_are_split() -> None:
    """A GPU that is busy for seconds is reset by its system."""
    script = """
        import torch

        def dispatches(call):
            before = torch.webgpu.memory_stats()["dispatches"]
            call()
            return torch.webgpu.memory_stats()["dispatches"] - before

        a, b, c = torch.randn(96, 64), torch.randn(64, 128), torch.randn(128)
        x, y, z = a.to("webgpu"), b.to("webgpu"), c.to("webgpu")
        print(dispatches(lambda: x @ y), dispatches(lambda: torch.addmm(z, x, y)))
        print(torch.allclose((x @ y).cpu(), a @ b, atol=1e-4))
        print(torch.allclose(torch.addmm(z, x, y).cpu(), c + a @ b, atol=1e-4))
    """
    found = output_of(script, TORCH_WEBGPU_TEST_FLOPS=str(2 * 96 * 64 * 128 // 4))
    assert found == ["4 4", "True", "True"]
