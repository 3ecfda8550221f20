"""Several agents; docs/recipes.md says more."""

from core import FnCallAgent, Limits, handoff

LLM = {"model_type": "llama_cpp"}
botanist = FnCallAgent(llm=LLM, name="botanist", description="Knows plants.")
kitchen = FnCallAgent([botanist], LLM, name="Kitchen", description="Knows what can be made.")
desk = FnCallAgent([handoff(kitchen, back=True)], LLM, name="Desk")

reply = desk.ask("Is matcha tea, and can I have some?", limits=Limits(calls=10, seconds=60))
print(reply.messages[-1].name, "says:", reply.text)
print(*(call.name for call in reply.calls))
