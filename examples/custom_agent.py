"""An agent of your own: it sees to it that a second look is taken at every draft."""

from collections.abc import Iterator

from core import Agent, Message

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}
REVIEW = "Improve this text. Write the better text alone:\n\n{draft}"


class Editor(Agent):
    def _run(self, messages: list[Message], lang: str = "en", **kwargs) -> Iterator[list[Message]]:
        draft: list[Message] = []
        for draft in self._call_llm(messages):
            yield draft
        second = [Message("user", REVIEW.format(draft=draft[-1].get_text_content()))]
        for better in self._call_llm(second):
            yield [*draft, *better]


def main(llm=LLM) -> list[str]:
    editor = Editor(llm=llm, system_message="You write short texts.", name="Editor")
    reply = editor.run_nonstream([{"role": "user", "content": "Two sentences about herons."}])
    return [message["content"] for message in reply]


if __name__ == "__main__":
    print("\n\n".join(main()))
