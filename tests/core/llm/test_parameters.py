"""What a reader may choose about how a model writes, by the names that its service takes."""

from __future__ import annotations

import pytest

from core.llm.parameters import efforts_of, generate_of

DASHSCOPE = "https://dashscope.aliyuncs.com/compatible-mode/v1"


@pytest.mark.parametrize(
    ("model", "address", "here", "names"),
    [
        ("gpt-5-mini", "https://api.openai.com/v1", False, ["off", "short", "long"]),
        ("openai/gpt-oss-120b", "https://api.groq.com/openai/v1", False, ["short", "long"]),
        ("o3-mini", "https://api.openai.com/v1", False, ["short", "long"]),
        ("gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta/openai", False, ["short", "long"]),
        ("qwen-plus", DASHSCOPE, False, ["off", "long"]),
        ("qwen3-30b-a3b", "http://127.0.0.1:8000/v1", False, ["off", "long"]),
        ("Qwen3-4B-Q4_K_M.gguf", "", True, ["off", "long"]),
        ("gpt-4o", "https://api.openai.com/v1", False, []),
        ("gpt-5-chat-latest", "https://api.openai.com/v1", False, []),
        ("qwen3-coder-plus", DASHSCOPE, False, []),
        ("qwen2.5-coder-0.5b", "", True, []),
        ("qwen-plus", "https://elsewhere.example/v1", False, []),
        ("piano3", "https://elsewhere.example/v1", False, []),
    ],
)
def test_only_a_model_that_is_known_to_think_is_told_how_long(
    model: str, address: str, here: bool, names: list[str]
) -> None:
    assert list(efforts_of(model, address, here=here)) == names


def test_what_was_chosen_is_sent_by_its_name_and_nothing_else_is() -> None:
    efforts = efforts_of("qwen3-30b", "http://127.0.0.1:8000/v1")
    sent = generate_of({"temperature": 0.2, "effort": "off", "top_p": None, "api_key": "x"}, efforts)
    assert sent == {
        "temperature": 0.2,
        "chat_template_kwargs": {"enable_thinking": False},
        "if_taken": ["chat_template_kwargs", "temperature"],
    }
    assert generate_of({"effort": "short"}, efforts) == {}  # this model knows no such
    assert generate_of({}, efforts) == {}
