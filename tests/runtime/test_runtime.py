"""The C++ tests of csrc/runtime, on every WebGPU runtime."""

import pytest

from tests import cpp


@pytest.mark.parametrize("runtime", ("dawn", "wgpu"))
@pytest.mark.parametrize("case", cpp.cases("runtime_tests"))
def test_case(case: str, runtime: str) -> None:
    cpp.check("runtime_tests", case, runtime)
