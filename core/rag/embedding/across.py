"""Questions held against passages in another script: what all questions in their script share is taken off first.

A model of many languages puts texts of one language near each other, so a passage is found for being like questions of
that language in general. To take the mean of a language off its vectors mends that (Libovický, Rosa and Fraser 2020,
arXiv:2004.05160). The means are those of the models that packages ship; `python -m bench.question_means` makes them.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from core.rag.embedding.base import Floats

Script: TypeAlias = Literal["Chinese", "other"]

MEANS: Final = Path(__file__).with_name("question_means.json")
"""By the name of a model and a script, the mean vector of questions."""
_SHARE: Final = 0.6  # of the mean; chosen on half of XQuAD's questions, in both directions


def without_common(model: str, asked: Floats, script: Script) -> Floats:
    """The vector of a question without most of what questions in its script share; as it is for an unknown model.

    Args:
        model: As of `Embedder.model`.
        asked: Of unit length, as is what is returned.
    """
    mean = _means().get(model, {}).get(script)
    if mean is None:
        return asked
    apart = asked - np.float32(_SHARE) * np.array(mean, np.float32)
    unit: Floats = (apart / np.linalg.norm(apart)).astype(np.float32)
    return unit


@cache
def _means() -> dict[str, dict[str, Any]]:
    return json.loads(MEANS.read_text("utf-8"))
