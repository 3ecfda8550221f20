"""A question about a picture, for a model that sees; one that does not is told that there is a picture."""

import sys

from core import Assistant

LLM = {"model": "qwen3-vl-plus"}  # the key is in DASHSCOPE_API_KEY


def main(llm=LLM, picture: str = "picture.png") -> str:
    assistant = Assistant(function_list=["image_zoom_in_tool"], llm=llm)
    question = [{"image": picture}, {"text": "What does this picture show?"}]
    return assistant.run_nonstream([{"role": "user", "content": question}])[-1]["content"]


if __name__ == "__main__":
    print(main(picture=sys.argv[1]))
