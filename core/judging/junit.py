"""A run of a suite in the XML of JUnit, which pipelines read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from core.judging.report import why

if TYPE_CHECKING:
    from core.judging.result import SuiteRun
    from core.languages import Lang

_FORBIDDEN: Final = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(run: SuiteRun, lang: Lang) -> str:
    """One test suite with a test case for each task; what is not met is a failure, what could not be asked an error."""
    failed = sum(not row.passed and row.error is None for row in run.rows)
    errors = sum(row.error is not None for row in run.rows)
    about = {"name": _fit(run.suite), "tests": str(len(run.rows)), "failures": str(failed), "errors": str(errors)}
    whole = ET.Element("testsuites", {**about, "time": f"{run.seconds:.3f}"})
    suite = ET.SubElement(whole, "testsuite", {**about, "time": f"{run.seconds:.3f}", "timestamp": run.began[:19]})
    for row in run.rows:
        named = {"classname": _fit(run.suite), "name": _fit(row.id), "time": f"{row.seconds:.3f}"}
        case = ET.SubElement(suite, "testcase", named)
        if row.error is not None:
            said = _fit(str(row.error.get("message", "")))
            ET.SubElement(case, "error", {"type": _fit(str(row.error.get("key", ""))), "message": said})
            continue
        missed = [one for one in row.checks if not one.passed]
        if missed:
            said = [_fit(why(one, lang)) for one in missed]
            failure = ET.SubElement(case, "failure", {"type": _fit(missed[0].kind), "message": said[0]})
            failure.text = "\n".join([*said, "", _fit(row.answer)])
    ET.indent(whole)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(whole, encoding="unicode")}\n'


def _fit(text: str) -> str:
    """A text without the signs that XML cannot hold."""
    return _FORBIDDEN.sub("\ufffd", text)
