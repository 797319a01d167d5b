"""Each op once on wgpu-native: the tests marked `once`."""

from tests.rerun import rerun


def test_each_op_once_on_wgpu_native() -> None:
    rerun("-m", "once", "tests/ops", least=40, TORCH_WEBGPU_RUNTIME="wgpu")
