"""A batch that goes on where it stopped; docs/recipes.md says more."""

import json
from pathlib import Path

from core import BasicAgent, ParlourError

LLM = {"model_type": "llama_cpp"}
QUESTIONS = ["What colour is grass?", "What colour is a frog?"]
done = Path("answers.jsonl")
agent = BasicAgent(llm=LLM)


def go_on() -> int:
    """Ask what has no answer yet; how many were asked."""
    lines = done.read_text().splitlines() if done.exists() else []
    answered = {json.loads(line)["question"] for line in lines}
    left = [one for one in QUESTIONS if one not in answered]
    answers = agent.map(left, concurrency=8, keep_errors=True)
    with done.open("a") as file:
        for question, answer in zip(left, answers, strict=True):
            if not isinstance(answer, ParlourError):
                file.write(json.dumps({"question": question, "answer": answer.text}) + "\n")
    return len(left)


print(go_on(), go_on())
