"""A back end of your own; docs/recipes.md says more."""

from core import BaseChatModel, BasicAgent, register_llm
from core.messages.events import MessageFinished, MessageStarted, TextDelta

LLM = {"model_type": "llama_cpp"}


@register_llm("echo")
class EchoModel(BaseChatModel):
    """Says again what was asked."""

    async def _stream(self, request):
        yield MessageStarted()
        for word in request.messages[-1].get_text_content().split():
            yield TextDelta(f"{word} ")
        yield MessageFinished("stop")


print(BasicAgent(llm={"model_type": "echo"}).ask("Is anybody there?").text)
