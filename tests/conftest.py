"""The whole suite runs on a real adapter, with the CPU fallback forbidden unless a test asks for it."""

import os

# A small kernel is far faster on llvmpipe's own thread, and a fallback would hide a missing kernel.
os.environ.setdefault("LP_NUM_THREADS", "0")
os.environ.setdefault("TORCH_WEBGPU_FALLBACK", "error")
os.environ.setdefault("TORCH_WEBGPU_TUNE", "off")  # tests of one kernel are not to get another one

import pytest
import torch


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "once: one dtype and one layout of each op, for a run on another runtime")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests run in one process and share its kernels; those of all OpInfos are shared out by op."""
    for item in items:
        op = getattr(item, "callspec", None) and item.callspec.params.get("name")
        group = f"{item.path.stem}-{op}" if item.path.stem == "test_opinfo" else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_sessionstart(session: pytest.Session) -> None:
    if not torch.webgpu.is_available():
        pytest.exit(f"no adapter to test on: {torch.webgpu.unavailable_reason()}", returncode=1)


@pytest.fixture(autouse=True)
def forbid_fallback() -> None:
    """Each test starts with the mode of the suite, whatever the one before left."""
    torch.webgpu.set_fallback_mode("error")
