"""Turns to what a Transformers model reads: through its own chat template, or a plain one where it has none."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from core.errors import ModelMisbehavedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.llm.backends.local_turns import Json
    from core.llm.backends.transformers_load import Loaded

_CHATML: Final = (
    "{% for turn in messages %}<|im_start|>{{ turn.role }}\n{{ turn.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant{{ '\\n' }}"  # a line break at the end of a template is none
)
_PLAIN: Final = (
    "{% for turn in messages %}{{ names[turn.role] }}{{ turn.content }}\n\n{% endfor %}{{ names.assistant.strip() }}"
)
_NAMES: Final = {"system": "", "user": "User: ", "assistant": "Assistant: "}
PLAIN_STOP: Final = ("\n\nUser:",)
"""Where a reply ends if the model was never taught to take turns."""


def prompt_text(loaded: Loaded, turns: Sequence[Json], extra: Mapping[str, Any]) -> str:
    """The text that the model goes on from. A last turn of the assistant's is one to be continued.

    Raises:
        ModelMisbehavedError: The model's own template cannot make anything of the conversation.
    """
    turns = list(turns)
    begun = _text(turns.pop()["content"]) if turns and turns[-1]["role"] == "assistant" else ""
    renderer = loaded.processor if loaded.processor is not None else loaded.tokenizer
    if not has_template(loaded):
        marked = "<|im_end|>" in loaded.tokenizer.get_vocab()
        return _plain(loaded, turns, _CHATML if marked else _PLAIN) + begun
    error_of_templates: type[Exception] = import_module("jinja2").TemplateError
    options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, **extra}
    try:
        return renderer.apply_chat_template(turns, **options) + begun
    except error_of_templates:
        pass  # many know no system turn
    try:
        return renderer.apply_chat_template(_without_system(turns), **options) + begun
    except error_of_templates as error:
        message = f"The model's chat template cannot render the conversation: {error}"
        raise ModelMisbehavedError(error, message=message) from error


def has_template(loaded: Loaded) -> bool:
    """Whether the model brings a chat template."""
    return bool(getattr(loaded.processor, "chat_template", None) or loaded.tokenizer.chat_template)


def _plain(loaded: Loaded, turns: Sequence[Json], template: str) -> str:
    written = [{"role": turn["role"], "content": _text(turn["content"])} for turn in turns]
    return loaded.tokenizer.apply_chat_template(written, chat_template=template, tokenize=False, names=_NAMES)


def _without_system(turns: list[Json]) -> list[Json]:
    """What the system says put at the front of the first question."""
    if len(turns) < 2 or turns[0]["role"] != "system":
        return turns
    system, first, *rest = turns
    before, after = system["content"], first["content"]
    both = f"{before}\n\n{after}" if isinstance(after, str) else [*before, {"type": "text", "text": "\n\n"}, *after]
    return [{**first, "content": both}, *rest]


def _text(content: str | list[Json]) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in content)
