"""A tool of your own: as a class with a JSON Schema, and as a plain function."""

import json

from core import Assistant, BaseTool, register_tool

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}
PRICES = {"tea": 3.5, "cake": 4.0}


@register_tool("price", allow_overwrite=True)
class Price(BaseTool):
    description = "Tells what a thing on the menu costs, in euros."
    things = {"type": "string", "enum": list(PRICES)}
    parameters = {"type": "object", "properties": {"thing": things}, "required": ["thing"]}

    def call(self, params: str | dict, **kwargs) -> str:
        thing = self._verify_json_format_args(params)["thing"]
        return json.dumps({thing: PRICES[thing]})


def opening_hours(day: str) -> str:
    """Tells when the café is open.

    Args:
        day: A day of the week, such as Monday.
    """
    return "closed" if day.lower() == "monday" else "9:00 to 18:00"


def main(llm=LLM) -> str:
    waiter = Assistant(function_list=["price", opening_hours], llm=llm, system_message="You are a waiter.")
    return waiter.run_nonstream([{"role": "user", "content": "What does the tea cost?"}])[-1]["content"]


if __name__ == "__main__":
    print(main())
