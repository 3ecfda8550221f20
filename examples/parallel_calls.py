"""Several calls in one step run at the same time: three lookups of half a second take half a second."""

import time

from core import FnCallAgent

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}


def temperature(city: str) -> str:
    """Tells how warm it is in a city.

    Args:
        city: The city's name.
    """
    time.sleep(0.5)
    return f"{10 + len(city)} °C"


def main(llm=LLM) -> tuple[str, int, float]:
    agent = FnCallAgent([temperature], llm, "You know the weather. Ask about all cities at once.")
    began = time.monotonic()
    reply = agent.run_nonstream([{"role": "user", "content": "How warm is it in Paris, Rome and 上海?"}])
    calls = sum(message["role"] == "function" for message in reply)
    return reply[-1]["content"], calls, time.monotonic() - began


if __name__ == "__main__":
    text, calls, seconds = main()
    print(f"{text}\n({calls} calls in {seconds:.1f} s)")
