"""A router: its model picks who answers, by what the agents say they are good at."""

from core import Assistant, Router

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}


def main(llm=LLM, question: str = "What is 17 * 23?") -> tuple[str, str]:
    accountant = Assistant(["calculator"], llm, name="Accountant", description="Calculates.")
    poet = Assistant(llm=llm, system_message="You write poems.", name="Poet", description="Writes poems.")
    router = Router(llm, [accountant, poet])
    last = router.run_nonstream([{"role": "user", "content": question}])[-1]
    return last.get("name", ""), last["content"]


if __name__ == "__main__":
    print(": ".join(main()))
