"""Answers that CI checks; docs/recipes.md says more."""

from core import BasicAgent, Suite, evaluate

LLM = {"model_type": "llama_cpp"}


def test_answers_are_as_good_as_they_were() -> None:
    run = evaluate(Suite.of("suite.yaml"), BasicAgent(llm=LLM))
    assert run.total.passed / run.total.of >= 0.9, [row.id for row in run.rows if not row.passed]


test_answers_are_as_good_as_they_were()
