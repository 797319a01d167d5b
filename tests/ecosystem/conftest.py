"""The table that `make ecosystem` prints: what works with other packages, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

_rows: dict[str, tuple[str, str]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Iterator[None]:
    report = yield
    if report.when == "call" or report.outcome != "passed":
        how = (getattr(item, "function", item).__doc__ or "").strip().partition("\n")[0]
        if report.skipped:
            how = str(report.longrepr[2]).removeprefix("Skipped: ")
        name = item.name.removeprefix("test_").replace("_", " ")
        if report.when != "teardown" or name not in _rows:
            _rows[name] = ({"passed": "yes", "failed": "NO", "skipped": "not tried"}[report.outcome], how)
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not _rows:
        return
    width = max(len(name) for name in _rows)
    terminalreporter.write_line(f"\n{'feature':<{width}}  {'works':<9}  how")
    for name, (works, how) in _rows.items():
        terminalreporter.write_line(f"{name:<{width}}  {works:<9}  {how}")
