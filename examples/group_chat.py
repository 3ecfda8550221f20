"""Three speakers at one table, in turn; the host could also pick (`agent_selection_method="auto"`)."""

from core import BasicAgent, GroupChat

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}
ROLES = {"Ann": "You like every plan.", "Bob": "You see the risk in every plan.", "李雷": "你负责总结大家的意见。"}


def main(llm=LLM, question: str = "Shall we open a second café?") -> list[tuple[str, str]]:
    members = [
        BasicAgent(llm=llm, name=name, system_message=f"You are {name}. {role} One sentence.")
        for name, role in ROLES.items()
    ]
    table = GroupChat(members, agent_selection_method="round_robin", llm=llm)
    reply = table.run_nonstream([{"role": "user", "content": question, "name": "Kim"}], max_round=len(members))
    return [(message.get("name", ""), message["content"]) for message in reply]


if __name__ == "__main__":
    print("\n".join(f"{name}: {text}" for name, text in main()))
