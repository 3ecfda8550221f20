"""What agents with a built-in model get right: `python -m bench.agents_suite [name of weights] [suite.yaml] [--show]`.

The suite is `assets/suites/samples.yaml` unless another is named; each task is asked once, at temperature 0. The share
of right tool choices is that of the checks for a call, or for none, over all tasks that have one; `--show` prints what
went wrong. Weights that are not on this machine are fetched first.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.figures import Figure, report
from core.agents.config.schema import AgentConfig
from core.judging.report import reasons
from core.judging.result import SuiteRun
from core.judging.run import aevaluate
from core.llm.backends.llama_cpp import LlamaCppModel
from core.llm.weights_catalog import DEFAULT

SUITE = Path(__file__).resolve().parents[1] / "assets" / "suites" / "samples.yaml"
CHOICE = {"qwen2.5-coder-0.5b": 0.8, "qwen2.5-coder-1.5b": 0.9}
WHOLE = 0.6  # of the tasks, with every check of theirs: what was reached when this was built


def figures(run: SuiteRun, name: str, seconds: float) -> list[Figure]:
    """The figures of a run."""
    chosen = [one.passed for row in run.rows for one in row.checks if one.kind in {"called", "no_tool"}]
    per_task = f"{len(run.rows)} tasks, {seconds / len(run.rows):.1f} s of CPU each"
    groups = [*run.totals("lang").items(), *run.totals("tag").items()]
    parts = ", ".join(f"{group} {total.passed} of {total.of}" for group, total in groups)
    return [
        Figure(
            f"{run.model}: tool choice on the suite of samples",
            sum(chosen) / max(1, len(chosen)),
            CHOICE.get(name, 0.0),
            "",
            f"{sum(chosen)} of {len(chosen)}; {per_task}",
            at_least=True,
        ),
        Figure(f"{run.model}: tasks of that suite, all checks", run.total.share, WHOLE, "", parts, at_least=True),
    ]


async def main(arguments: Sequence[str]) -> None:
    """Measure one model."""
    named = [argument for argument in arguments if not argument.startswith("-")]
    suite = next((Path(one) for one in named if one.endswith((".yaml", ".yml"))), SUITE)
    name = next((one for one in named if not one.endswith((".yaml", ".yml"))), DEFAULT)
    generate = {"temperature": 0, "max_tokens": 200}
    model = LlamaCppModel({"model": name, "threads": 1, "generate_cfg": generate})
    await model.prepare()
    began = time.process_time()
    try:
        run = await aevaluate(suite, AgentConfig.of({"llm": model}), concurrency=1)
    finally:
        await model.aclose()
    if "--show" in arguments:
        for row in run.rows:
            calls = " ".join(f"{tool}{given}" for tool, given in row.calls)
            print(f"{'   ' if row.passed else 'NO '}{row.id}: {calls} → {row.answer[:160]!r}", file=sys.stderr)
            for why in reasons(row, "en"):
                print(f"      {why}", file=sys.stderr)
    report(figures(run, name, time.process_time() - began))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
