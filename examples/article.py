"""An article in chapters: planned, then written from a document, with [n] marks where a passage bears it out."""

from pathlib import Path

from core import ArticleAgent

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}
POLICY = Path(__file__).parent.parent / "assets" / "samples" / "policy.pdf"


def main(llm=LLM, request: str = "Explain this policy to somebody who has just moved in.") -> tuple[str, str]:
    writer = ArticleAgent(llm=llm, files=[str(POLICY)], full_article=True, max_iteration=4)  # chapters at most
    reply = writer.run_nonstream([{"role": "user", "content": request}])
    thoughts = [message["reasoning_content"] for message in reply if message.get("reasoning_content")]
    return thoughts[-1], reply[-1]["content"]  # the plan, and the article


if __name__ == "__main__":
    print("\n\n".join(main()))
