"""An assistant for a SQLite database, over an MCP server: `python examples/database_assistant.py test.db`."""

import sys

from core import Assistant

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}
SERVER = {"command": "uvx", "args": ["mcp-server-sqlite", "--db-path", *(sys.argv[1:] or ["test.db"])]}


def main(llm=LLM, server=SERVER, questions=("数据库有几张表", "创建一个学生表包括学生的姓名、年龄")) -> list[str]:
    bot = Assistant(
        function_list=[{"mcpServers": {"sqlite": server}}],
        llm=llm,
        system_message="你扮演一个数据库助手，你具有查询数据库的能力",
        name="数据库助手",
    )
    messages: list[dict] = []
    answers = []
    for question in questions:
        messages.append({"role": "user", "content": question})
        reply = bot.run_nonstream(messages)
        messages += reply
        answers.append(reply[-1]["content"])
    return answers


if __name__ == "__main__":
    print("\n".join(main()))
