"""Every line of a file is a question: four at a time, with progress: `python examples/batch.py questions.txt`."""

import sys
from pathlib import Path

from core import Assistant

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}


def main(llm=LLM, file: str | Path = "questions.txt") -> list[str]:
    questions = [line for line in Path(file).read_text("utf-8").splitlines() if line.strip()]
    answers = Assistant(["calculator"], llm).map(
        questions,
        concurrency=4,
        keep_errors=True,  # what fails stands in the answer's place, and the others go on
        progress=lambda so_far: print(f"{so_far.done} of {so_far.total}", file=sys.stderr),
    )
    return [getattr(answer, "text", f"failed: {answer}") for answer in answers]


if __name__ == "__main__":
    print("\n".join(main(file=sys.argv[1])))
