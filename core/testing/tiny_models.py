"""Transformers models with random weights, small enough to be made in a moment: they write nonsense, but for real.

torch and transformers are imported when a model is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

_TEMPLATE: Final = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for part in m.content %}{{ '<image>' if part.type == 'image' else part.text }}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_END: Final = "<|im_end|>"
_IMAGE: Final = "<image>"
_SPECIAL: Final = ("<|endoftext|>", "<|im_start|>", _END, _IMAGE)
_CONTEXT: Final = 512
_PICTURE: Final = 28
_PATCH: Final = 14


def writing_model(folder: Path) -> Path:
    """A model that takes text, in `folder`."""
    transformers: Any = _seeded()
    tokenizer = _tokenizer(transformers)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**_shape(tokenizer)))
    _save(folder, model, tokenizer)
    return folder


def seeing_model(folder: Path) -> Path:
    """A model that takes text and pictures, in `folder`: four tokens for each picture."""
    transformers: Any = _seeded()
    tokenizer = _tokenizer(transformers)
    eyes = transformers.CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=_PICTURE,
        patch_size=_PATCH,
    )
    image_token = tokenizer.convert_tokens_to_ids(_IMAGE)
    config = transformers.LlavaConfig(
        vision_config=eyes,
        text_config=transformers.LlamaConfig(**_shape(tokenizer)),
        image_token_index=image_token,
        image_token_id=image_token,
        image_seq_length=(_PICTURE // _PATCH) ** 2,
    )
    size = {"height": _PICTURE, "width": _PICTURE}
    pictures = transformers.CLIPImageProcessorPil(size={"shortest_edge": _PICTURE}, crop_size=size)
    processor = transformers.LlavaProcessor(
        image_processor=pictures,
        tokenizer=tokenizer,
        patch_size=_PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token=_IMAGE,
        chat_template=_TEMPLATE,
    )
    _save(folder, transformers.LlavaForConditionalGeneration(config), processor)
    return folder


def _seeded() -> Any:
    import_module("torch").manual_seed(7)
    return import_module("transformers")


def _shape(tokenizer: Any) -> dict[str, Any]:
    end = tokenizer.convert_tokens_to_ids(_END)
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": _CONTEXT,
        "eos_token_id": end,
        "pad_token_id": end,
        "bos_token_id": None,
    }


def _tokenizer(transformers: Any) -> Any:
    """A vocabulary of bytes."""
    tokenizers: Any = import_module("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(tokenizers.models.BPE({letter: n for n, letter in enumerate(alphabet)}, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens([*_SPECIAL])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=_END, pad_token=_END, chat_template=_TEMPLATE
    )


def _save(folder: Path, model: Any, words: Any) -> None:
    model.generation_config.eos_token_id = None  # nonsense seldom ends; the vocabulary's own end still counts
    model.save_pretrained(folder)
    words.save_pretrained(folder)
