"""The data of the list of built-in models: what each file is, what it takes, and how it is on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webui.panels.models import failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.models.weight_files import WeightFile
    from webui.words import Words

_GIGA = 1_000_000_000
_SHAPES = {"here": "ok", "begun": "open", "fetching": "run", "absent": "off"}
_FITS = {"suits": "ok", "tight": "ask", "no_memory": "bad", "no_disk": "bad", "unknown": "off"}


def files_data(files: Sequence[WeightFile], words: Words) -> dict[str, Any]:
    """All of the list."""
    return {"files": [file_data(one, words) for one in files]}


def file_data(one: WeightFile, words: Words) -> dict[str, Any]:
    """One of them. Nothing is said that is not known: "not known" is said in its place."""
    weights, unknown = one.weights, words("weights.unknown")
    size = size_said(weights.size) if weights.size else ""
    about = words("weights.about", size=size_said(weights.about)) if weights.about and not size else ""
    memory = size_said(one.memory) if one.memory else unknown
    able = [words("weights.sees")] if weights.sees else []
    return {
        "name": weights.name,
        "label": weights.label,
        "size": size or about or unknown,
        "licence": weights.licence or unknown,
        "languages": weights.languages.get(words.spoken, "") or unknown,
        "able": able,
        "memory": words("weights.about", size=memory) if one.memory and one.estimated else memory,
        "fit": words(f"weights.fit_{one.fit}"),
        "fit_shape": _FITS[one.fit],
        "state": one.state,
        "shape": _SHAPES[one.state],
        "said": _said(one, words),
        "checked": words("weights.by_list" if not _is_recorded(one) else "weights.by_record"),
        "repository": weights.repository,
        "ours": one.ours,
        "failed": failure(one.failed, words) if one.failed is not None else "",
    }


def size_said(size: int) -> str:
    """Bytes as makers tell the size of a file: in thousands of thousands."""
    return f"{size / 1e9:.1f} GB" if size >= _GIGA else f"{max(1, round(size / 1e6))} MB" if size else "0 MB"


def about_file(row: dict[str, Any], words: Words) -> str:
    """Its facts on one line, for a terminal."""
    facts = ("size", "licence", "languages", "memory", "checked")
    named = [words(f"weights.fact_{fact}", value=row[fact]) for fact in facts]
    return words("lang.comma").join([*named, *row["able"], row["fit"]])


def _is_recorded(one: WeightFile) -> bool:
    from core.llm.weights_catalog import WEIGHTS

    return one.weights.name not in WEIGHTS


def _said(one: WeightFile, words: Words) -> str:
    done = size_said(one.done)
    if one.state == "here":
        return words("weights.is_here" if one.ours else "weights.is_elsewhere")
    if one.state == "absent":
        return words("weights.is_absent")
    total = size_said(one.weights.size) if one.weights.size else words("weights.unknown")
    return words("weights.is_fetching" if one.state == "fetching" else "weights.is_begun", done=done, total=total)
