"""Two agents in the page that the `parlour` command opens; a click, or @ and a name, turns to the other one."""

from core import Assistant, ReActChat
from webui import WebUI

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}


def page(llm=LLM) -> WebUI:
    helper = Assistant(["calculator"], llm, name="Helper", description="Answers questions.")
    analyst = ReActChat(["code_interpreter"], llm, name="Analyst", description="Looks into data.")
    return WebUI(
        [helper, analyst],
        chatbot_config={
            "user.name": "You",
            "input.placeholder": "Ask the helper, or @Analyst",
            "prompt.suggestions": ["What is 17 * 23?", "@Analyst Draw a sine curve."],
        },
    )


if __name__ == "__main__":
    page().run(enable_mention=True)
