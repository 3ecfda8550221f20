"""Questions about a document: the answer carries [n] marks, and each mark knows its page."""

from pathlib import Path

from core import Assistant

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}
POLICY = Path(__file__).parent.parent / "assets" / "samples" / "policy.pdf"


def main(llm=LLM, question: str = "How high is the deductible?") -> str:
    assistant = Assistant(llm=llm, files=[str(POLICY)])
    reply = assistant.run_nonstream([{"role": "user", "content": question}])
    for message in reply:
        for number, passage in enumerate((message.get("extra") or {}).get("passages", []), 1):
            print(f"[{number}] {passage['document']}, page {passage['page']}: {passage['text'][:60]!r}")
    return reply[-1]["content"]


if __name__ == "__main__":
    print(main())
