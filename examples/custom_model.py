"""A model of your own: two methods, and every agent can use it by its name."""

from collections.abc import Iterator

from core import Assistant, BaseChatModel, Message, register_llm


@register_llm("shouting")
class ShoutingModel(BaseChatModel):
    """Says what it is told, louder."""

    in_process = True

    def _chat_stream(self, messages: list[Message], delta_stream: bool, generate_cfg: dict) -> Iterator[list[Message]]:
        said = ""
        for word in messages[-1].get_text_content().upper().split():
            said = f"{said} {word}".strip()
            yield [Message("assistant", said)]

    def _chat_no_stream(self, messages: list[Message], generate_cfg: dict) -> list[Message]:
        return list(self._chat_stream(messages, False, generate_cfg))[-1]


def main(question: str = "tell me more") -> str:
    assistant = Assistant(llm={"model_type": "shouting"})
    return assistant.run_nonstream([{"role": "user", "content": question}])[-1]["content"]


if __name__ == "__main__":
    print(main())
