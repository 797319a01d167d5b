"""The C++ tests of csrc/shader, on Dawn's Null adapter."""

import pytest

from tests import cpp


@pytest.mark.parametrize("case", cpp.cases("shader_tests"))
def test_case(case: str) -> None:
    cpp.check("shader_tests", case, "dawn")
