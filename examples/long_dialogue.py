"""A conversation without end: the newest turns that fit go to the model, the system message always."""

from itertools import dropwhile

from core import Assistant, Message, TokenBufferMemory, get_chat_model

LLM = {"model_type": "llama_cpp"}  # the built-in model; or {"model": "qwen-plus", "api_key": "…"}


def main(llm=LLM, questions: tuple[str, ...] = ("My name is Kim.", "What is my name?"), room: int = 2000) -> list[str]:
    model = get_chat_model(llm)
    assistant = Assistant(llm=model, system_message="You are brief.")
    memory = TokenBufferMemory(model, max_tokens=room)
    answers = []
    for question in questions:
        memory.add_message(Message("user", question))
        fitting = dropwhile(lambda said: said.role != "user", memory.get_history_messages())
        reply = assistant.run_nonstream(list(fitting))
        for message in reply:
            memory.add_message(message)
        answers.append(reply[-1].get_text_content())
    return answers


if __name__ == "__main__":
    print("\n".join(main()))
