"""A support bot that asks before it acts; docs/recipes.md says more."""

from core import FnCallAgent, Policy, tool

LLM = {"model_type": "llama_cpp"}


@tool(writes=True)  # it changes something, so somebody is asked
def refund(order: int) -> str:
    """Give the money for an order back."""
    return f"{order} is refunded"


clerk = FnCallAgent([refund], LLM, "You are the clerk of a tea shop.")


def talk(customer: str):
    """The conversation with a customer, which outlives the program."""
    return clerk.session("support.db", customer, approval=Policy())


with talk("ann") as session:  # where the customer writes
    reply = session.ask("Order 17 came cold. My money back, please!")
    print(reply.stop_reason)

with talk("ann") as session:  # where the team decides
    for asked in session.waiting:
        print(asked.name, asked.arguments)
        session.decide(asked.call_id, True)
    print(session.resume().text)
