"""Says the name of a test the moment it fails; the gate hears it while the others still run.

`python -m pytest -p tests.told_at_once` does so. Pytest's own list comes at the end, a quarter of an hour later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.reports import CollectReport, TestReport

FAILED = "FAILED at once: "
"""What such a line begins with."""


class ToldAtOnce:
    """Writes a line for each failure.

    Args:
        reporter: Pytest's own; it writes the dots, too.
    """

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: TestReport) -> None:
        """A test has been set up, has run or has been taken down."""
        self._say(report)

    def pytest_collectreport(self, report: CollectReport) -> None:
        """A file has been read."""
        self._say(report)

    def _say(self, report: TestReport | CollectReport) -> None:
        if report.failed:
            self._reporter.write(f"\n{FAILED}{report.nodeid}\n")  # dots may stand in the line already


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Processes that only run tests for another say nothing themselves."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(reporter, pytest.TerminalReporter) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(ToldAtOnce(reporter), "told-at-once")
