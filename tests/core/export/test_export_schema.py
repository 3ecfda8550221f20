"""What is written is read back as the same objects, whatever is in it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.export.redaction import Redaction, is_called_secret
from core.export.schema import (
    ConversationExport,
    ExportedCall,
    ExportedCitation,
    ExportedConversation,
    ExportedDocument,
    ExportedFile,
    ExportedInner,
    ExportedRun,
    ExportedThought,
    ExportedTurn,
    read_export,
)
from core.messages.content import ContentItem
from core.messages.message import Message, Usage
from tests.tries import tries

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
MAYBE = st.none() | TEXT
MOMENTS = st.integers(1, 7_000_000_000_000_000).map(lambda micros: datetime.fromtimestamp(micros / 1e6, UTC))
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
DICTS: Any = st.dictionaries(TEXT, VALUES, max_size=2)
# Names and words that do not say "this is a key": what is called "TOKEN" goes, whatever it is.
PLAIN = TEXT.filter(lambda text: not is_called_secret(text))
PLAIN_DICTS: Any = st.dictionaries(
    PLAIN,
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | PLAIN,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(PLAIN, inner, max_size=2),
        max_leaves=4,
    ),
    max_size=2,
)
ITEMS = st.builds(lambda text: ContentItem(text=text), TEXT) | st.just(ContentItem(image="sha256:ab"))
STATUSES = st.sampled_from(["running", "complete", "paused", "stopped", "error", "interrupted"])
MESSAGES = st.builds(
    Message,
    st.sampled_from(["user", "assistant"]),
    TEXT | st.lists(ITEMS, max_size=2),
    name=MAYBE,
    function_call=st.none() | st.builds(lambda given: {"name": "tool", "arguments": json.dumps(given)}, DICTS),
    reasoning_content=MAYBE,
    extra=st.none() | DICTS,
)
CALLS = st.builds(ExportedCall, id=TEXT, name=TEXT, arguments=VALUES, state=st.just("done"), message=st.just(0))
THOUGHTS = st.builds(
    ExportedThought, id=TEXT, message_id=TEXT, thought=TEXT, tool_input=VALUES, position=st.just(1), created_at=MOMENTS
)
CITATIONS = st.builds(ExportedCitation, number=st.integers(1, 9), document=TEXT, page=st.none() | st.just(3), text=TEXT)
RUNS = st.builds(
    ExportedRun,
    id=TEXT,
    model=TEXT,
    status=STATUSES,
    error=st.none() | DICTS,
    usage=st.none() | st.builds(Usage, prompt_tokens=st.integers(0, 9), cost=st.none() | st.just(0.1)),
    started_at=MOMENTS,
)
TURNS = st.builds(
    ExportedTurn,
    id=TEXT,
    parent_id=MAYBE,
    role=st.sampled_from(["user", "assistant"]),
    status=STATUSES,
    shown=st.booleans(),
    created_at=MOMENTS,
    messages=st.lists(MESSAGES, max_size=2).map(tuple),
    calls=st.lists(CALLS, max_size=1).map(tuple),
    inner=st.lists(
        st.builds(ExportedInner, calls=st.just(("a", "b")), messages=MESSAGES.map(lambda one: (one,))), max_size=1
    ).map(tuple),
    thoughts=st.lists(THOUGHTS, max_size=1).map(tuple),
    citations=st.lists(CITATIONS, max_size=1).map(tuple),
    run=st.none() | RUNS,
)
EXPORTS = st.builds(
    ConversationExport,
    exported_at=MOMENTS,
    conversation=st.builds(ExportedConversation, id=TEXT, title=TEXT, created_at=MOMENTS, updated_at=MOMENTS),
    documents=st.just((ExportedDocument(id="d", file_id="f", name="n", status="ready"),)),
    turns=st.lists(TURNS, max_size=2).map(tuple),
    files=st.just((ExportedFile(id="f", name="n", media_type="text/plain", size=1, sha256="ab"),)),
    running=st.booleans(),
)


@settings(max_examples=tries(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(EXPORTS)
def test_an_export_is_read_back_as_it_was(export: ConversationExport) -> None:
    assert read_export(export.model_dump_json()) == export


@settings(max_examples=tries(100), deadline=None)
@given(PLAIN_DICTS)
def test_what_holds_no_key_is_not_changed(values: dict[str, Any]) -> None:
    arguments = json.dumps(values)
    assert Redaction(["a-key-that-is-nowhere"]).arguments(arguments) == arguments


@settings(max_examples=tries(100), deadline=None)
@given(st.text('abcXYZ-"\\é漢', min_size=6, max_size=12), st.text("xyz ", max_size=5))
def test_a_known_key_is_found_wherever_it_stands(key: str, around: str) -> None:
    redaction = Redaction([key])
    hidden = redaction.arguments(json.dumps({"deep": [{"text": f"1{around}1{key}1{around}1"}]}))
    assert json.loads(hidden) == {"deep": [{"text": f"1{around}1…1{around}1"}]}


def test_what_is_called_a_token_goes_however_short_it_is() -> None:
    assert Redaction().arguments('{"TOKEN": "0"}') == '{"TOKEN": "…"}'


def test_what_a_field_called_password_holds_goes_and_what_is_only_near_it_stays() -> None:
    given: dict[str, Any] = {
        "password": "easy",
        "X-Api-Key": "k",
        "max_tokens": 9,
        "keywords": "tea",
        "env": {"A": "b"},
    }
    kept = {"password": "…", "X-Api-Key": "…", "max_tokens": 9, "keywords": "tea", "env": {"A": "b"}}
    assert Redaction().value(given) == kept


def test_what_lies_too_deep_for_a_reader_becomes_text_without_keys() -> None:
    deep: Any = {"api_key": "swordfish", "more": "tea"}
    for _ in range(300):
        deep = [deep]
    hidden = json.loads(Redaction().arguments(json.dumps({"given": deep})))
    call = ExportedCall(id="c", name="tool", arguments=hidden, state="done", message=0)
    text = call.model_dump_json()
    assert "swordfish" not in text
    assert "tea" in text
