"""A question about a recording, for a model that hears."""

import sys

from core import Assistant

LLM = {"model": "qwen3-omni-flash", "model_type": "qwenomni_oai"}  # the key is in DASHSCOPE_API_KEY


def main(llm=LLM, recording: str = "recording.wav") -> str:
    assistant = Assistant(llm=llm)
    question = [{"audio": recording}, {"text": "What is being said?"}]
    return assistant.run_nonstream([{"role": "user", "content": question}])[-1]["content"]


if __name__ == "__main__":
    print(main(recording=sys.argv[1]))
