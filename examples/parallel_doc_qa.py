"""A question for which everything must be read: each part of the documents, several at the same time."""

from pathlib import Path

from core import ParallelDocQA

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}
POLICY = Path(__file__).parent.parent / "assets" / "samples" / "policy.pdf"


def main(llm=LLM, question: str = "Which sums of money are named?") -> tuple[list[str], str]:
    agent = ParallelDocQA(llm=llm, files=[str(POLICY)], part_tokens=500, at_once=4)
    told = []

    def progress(of: str, text: str, done: int, total: int) -> None:  # of the files being read, then of the call
        told.append(text if of == "documents" else f"{done} of {total} parts")

    reply = agent.run_nonstream([{"role": "user", "content": question}], progress=progress)
    return told, reply[-1]["content"]


if __name__ == "__main__":
    parts, answer = main()
    print(parts[-1], answer, sep="\n")
