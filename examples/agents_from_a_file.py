"""Agents that a file describes: a router over an accountant, a reader of documents, and a group (`team.yaml`)."""

from pathlib import Path

from core import Agent, AgentConfig

TEAM = Path(__file__).parent / "team.yaml"


def main(llm=None, question: str = "What is 17 * 23?") -> list[tuple[str, str]]:
    config = AgentConfig.of(TEAM)  # checked: what is wrong in it is one sentence that names the field
    team = Agent.from_config({**config.to_dict(), "llm": llm} if llm else config)
    reply = team.run_nonstream([{"role": "user", "content": question}])
    return [(message.get("name", ""), message["content"]) for message in reply if message["content"]]


if __name__ == "__main__":
    print("\n".join(f"{name}: {text}" for name, text in main()))
