"""A model that looks into its documents only when it needs to, as often as it needs to."""

from pathlib import Path

from core import VirtualMemoryAgent

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}
SAMPLES = Path(__file__).parent.parent / "assets" / "samples"


def main(llm=LLM, questions: tuple[str, ...] = ("Say hello.", "How high is the deductible?")) -> list[tuple[int, str]]:
    agent = VirtualMemoryAgent(llm=llm, files=[str(SAMPLES / "policy.pdf"), str(SAMPLES / "notes.md")])
    messages, answers = [], []
    for question in questions:
        messages.append({"role": "user", "content": question})
        reply = agent.run_nonstream(messages)
        messages += reply
        searches = sum(message["role"] == "function" for message in reply)
        answers.append((searches, reply[-1]["content"]))
    return answers


if __name__ == "__main__":
    for searches, answer in main():
        print(f"{searches} searches: {answer}")
