"""Data analysis in steps of thought: code runs in the sandbox of this machine, on the file of the question."""

import tempfile
from pathlib import Path

from core import ReActChat

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}
ROWS = "month,sold\nJanuary,12\nFebruary,18\nMarch,30\n"


def main(llm=LLM) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "sales.csv"
        table.write_text(ROWS, "utf-8")
        agent = ReActChat(function_list=[{"name": "code_interpreter", "work_dir": folder}], llm=llm)
        question = [{"text": "What is the mean of the column sold in sales.csv?"}, {"file": str(table)}]
        return agent.run_nonstream([{"role": "user", "content": question}])


if __name__ == "__main__":
    for message in main():
        call = message.get("function_call")
        print(call["arguments"] if call else message.get("reasoning_content") or message["content"])
