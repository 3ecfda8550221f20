"""How the functions that take text are called: their other arguments, and those that nobody else's text reaches."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import UTC, date, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy

from core.agents.basic import BasicAgent
from core.agents.file_library import FileLibrary
from core.agents.handoff import Handoff
from core.agents.output import OutputType
from core.agents.react_parser import StepParser
from core.agents.small_title import naming
from core.doors.asked import Asked
from core.errors import ToolError
from core.export.cited_pages import CitedPages
from core.export.html_page import Cited
from core.export.markdown import LABELS
from core.export.redaction import Redaction
from core.export.schema import ExportedCitation
from core.importing.tree import Foreign, Node
from core.llm.backends.amazon import AccessKey
from core.llm.calling.qwen import MarkedBody
from core.llm.calling.tag_scanner import TAGGED
from core.llm.layers.fit_context import Costs
from core.llm.request import ChatRequest
from core.llm.wire.anthropic import Manner
from core.llm.wire.converse import Asking
from core.llm.wire.openai import Senses
from core.llm.wire.tools import ToolNames
from core.mcp.journal import ServerLog
from core.mcp.settings import ServerSettings
from core.messages.content import ContentItem
from core.messages.events import SourceCited, TextDelta
from core.messages.message import FunctionCall, Message
from core.models.menu import service_named
from core.rag.claims.bound import Row
from core.rag.claims.figures import figures_of
from core.rag.claims.makers import clauses_of
from core.rag.config import RAGConfig
from core.rag.document import Block, Passage
from core.rag.parsers.base import PLAIN
from core.rag.parsers.parts import File
from core.rag.parsers.pdf_page import Field, Line
from core.rag.places import units_of
from core.rag.question_tokens import Vocabulary
from core.rag.row_computing import Computing
from core.rag.row_conditions import Condition
from core.rag.row_follow_ups import Fragment
from core.rag.row_questions import RowQuestion
from core.rag.scope_part import Part
from core.rag.tables.query import Answer, Named, Source
from core.rag.tables.store import Column, Table
from core.runs.judgement import Open
from core.settings import Settings
from core.storage.base import RunRecord, StoredMessage
from core.storage.excerpts import Sought
from core.storage.sealing import Sealer
from core.testing.scripted_model import ScriptedModel
from core.tools.base import ToolResult
from webui.render.judging import Judging
from webui.render.markdown import Inline
from webui.uploads import Uploads
from webui.words import Words

# Parameters with these names are the house's own marks: it made them, or looked them up before.
OURS = frozenset(
    {"owner", "conversation_id", "document_id", "message_id", "server_id", "library_id", "run_id", "reply_id", "lang"}
    | {
        "call_id",
        "input_id",
        "document_ids",
        "message_ids",
        "running_ids",
        "digest",
        "keeps",
        "documents",
        "held_up",
        "media_type",
        "names",
        "parent",
    }
    | {"bubble_id", "parent_id", "worker", "versions", "cast", "how", "password", "pdf_reader", "model_type", "parser"}
)

TOOL = {
    "name": "a",
    "description": "a",
    "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
}
REQUEST = ChatRequest((Message("user", "a"),), (TOOL,))
PASSAGE = Passage("It rains in Spain. The plain is 12 km wide. 西班牙下雨。", 1.0, "a.pdf", "a", page=1)


CITATION = ExportedCitation(number=1, document="a.pdf", text=PASSAGE.text)


def hidden(module: str, name: str) -> Any:
    """What a module has for itself."""
    return vars(import_module(module))[name]


def _passages() -> list[Passage]:
    return [PASSAGE]


async def _room(_: int) -> None:
    """There is room."""


async def _said() -> AsyncGenerator[Any, None]:
    yield TextDelta("It rains in Spain. ")


# What stands for an argument with this annotation.
VALUES: Mapping[str, Callable[[], Any]] = {
    "Iterable[tuple[str, int]]": lambda: [("Park at the gate. 把车停在门口。", 1), (PASSAGE.text, 2)],
    "Sequence[Clause]": lambda: clauses_of([("Maria Keller wrote the report.", 1), ("《报告》由张伟撰写。", 2)]),
    "str": lambda: "a",
    "str | None": lambda: "a",
    "int": lambda: 1_000,
    "int | None": lambda: 1,
    "float": lambda: 1.0,
    "bool": lambda: False,
    "bytes": lambda: b"a",
    "Field": lambda: Field("a", "", "text", "b", on=False, options=(), place=(0.0, 0.0, 1.0, 1.0)),
    "Line": lambda: Line("a", (0.0, 0.0, 1.0, 1.0), 9.0, bold=False),
    "object": lambda: None,
    "Any": lambda: None,
    "Path": lambda: Path("a.txt"),
    "str | Path": lambda: "a.txt",
    "Lang": lambda: "en",
    "Tongue": lambda: "en",
    "NoText": lambda: "nothing",
    "Set[str]": frozenset,
    "Words": lambda: Words("en"),
    "Callable[[str], Words]": lambda: Words,
    "Settings": cache(Settings),  # nothing changes them, and each takes longer to make than a text to read
    "Sequence[str]": lambda: ["a"],
    "Iterable[str]": lambda: ["a"],
    "Collection[str]": lambda: ["a"],
    "tuple[str, ...]": lambda: ("a",),
    "list[str]": lambda: ["a"],
    "Path | str | bytes": lambda: "a.txt",
    "Library | None": lambda: None,
    "dict[str, ExportedFile]": dict,
    "ExportedCitation": lambda: CITATION,
    "list[Cited]": lambda: [Cited("a", CITATION, ("a",))],
    "PagePicture | None": lambda: None,
    "CitedPages": lambda: CitedPages(None),
    "Keep": lambda: lambda one: None,
    "Redaction": lambda: Redaction(["a secret"]),
    "Sealer": lambda: Sealer("a secret"),
    "Callable[[int], Awaitable[None]]": lambda: _room,
    "Callable[[str, str], str]": lambda: lambda alt, host: alt,
    "Node": lambda: Node("a", None, "user", "a"),
    "Foreign": lambda: Foreign("a", [Node("a", None, "user", "a")]),
    "str | Mapping[str, Any]": lambda: "a",
    "Sequence[FileRecord]": list,
    "set[str]": lambda: {"a"},
    "Sequence[str] | None": lambda: None,
    "Collection[str] | None": lambda: None,
    "Mapping[str, Any]": dict,
    "Mapping[str, object]": dict,
    "Mapping[str, str]": dict,
    "dict[str, Any]": dict,
    "dict[str, str]": dict,
    "Mapping[str, Any] | None": dict,
    "Sequence[Mapping[str, Any]]": lambda: [TOOL],
    "Sequence[tuple[str, str]]": list,
    "ChatRequest": lambda: REQUEST,
    "RAGConfig": RAGConfig,
    "Sequence[Passage]": _passages,
    "Sequence[Sequence[str]]": lambda: [[PASSAGE.text]],
    "Iterable[Sequence[str]]": lambda: [["City | Wide", "Madrid | 12"]],
    "Collection[int]": lambda: [1],
    "Sequence[int]": lambda: [1],
    "Sequence[Passage | Mapping[str, Any] | str]": _passages,
    "ClaimJudge | None": lambda: None,
    "Figure": lambda: figures_of("12 km")[0],
    "Sequence[Figure]": lambda: figures_of("40 rows, 12 km"),
    "Iterable[date]": lambda: [date(2026, 1, 1)],
    "Iterable[File]": lambda: [File("a.txt", 1, lambda: b"a")],
    "Message": lambda: Message("user", "a"),
    "Asked": lambda: Asked("parlour", [Message("assistant", "a")]),
    "Sequence[Turn]": list,
    "Sequence[Message]": lambda: [Message("user", "a")],
    "Iterable[Message]": lambda: [Message("user", "a")],
    "list[Message]": lambda: [Message("user", "a")],
    "ContentItem": lambda: ContentItem(text="a"),
    "Exception": lambda: ValueError("a"),
    "Exception | None": lambda: None,
    "Callable[[str], int]": lambda: len,
    "Callable[[str], str]": lambda: str,
    "Callable[[], float]": lambda: lambda: 0.0,
    "Callable[[], None]": lambda: lambda: None,
    "ToolNames | None": lambda: ToolNames(["a"]),
    "ToolNames": lambda: ToolNames(["a"]),
    "Callable[[str], bool]": lambda: bool,
    "Tags": lambda: TAGGED,
    "Body": MarkedBody,
    "OutputParser": lambda: StepParser(["a"]),
    "ServerLog": ServerLog,
    "ServerSettings": lambda: ServerSettings.model_validate({"url": "http://127.0.0.1/"}),
    "Mapping[str, GivenFile]": dict,
    "datetime": lambda: datetime(2026, 1, 1, tzinfo=UTC),
    "MenuService": lambda: service_named("openai", local=True),
    "BlockKind": lambda: "text",
    "sqlite3.Connection": lambda: sqlite3.connect(":memory:"),
    "ParseOptions": lambda: PLAIN,
    "float | None": lambda: None,
    "re.Pattern[str]": lambda: re.compile("a"),
    "frozenset[str]": frozenset,
    "str | dict[str, Any]": lambda: "{}",
    "Sequence[Message] | None": lambda: None,
    "Iterable[Checked]": list,
    "Iterable[Span]": list,
    "Sought": lambda: Sought.of("a b"),
    "Costs": lambda: Costs(ScriptedModel()),
    "ToolResult": lambda: ToolResult("a"),
    "RunRecord": lambda: RunRecord("a", "a", "a", "a", "complete", None, "", None, 0.0, 0.0),
    "Iterable[LoggedEvent]": list,
    "SourceCited": lambda: SourceCited((PASSAGE.as_dict(),), 3, " [1]"),
    "Sequence[LoggedEvent]": list,
    "Mapping[str, ExportedFile]": dict,
    "Mapping[str, Reply]": dict,
    "Sequence[StoredMessage]": list,
    "StoredMessage": lambda: StoredMessage("a", "a", None, "assistant", (), None, "complete", 0.0),
    "Sequence[Rectangle]": lambda: [(0.0, 0.0, 9.0, 9.0)],
    "Sequence[WordRow]": lambda: [(0, 9, "a\nword", (0, 4, 5, 9))],
    "Sequence[Unit]": lambda: units_of([Block("paragraph", PASSAGE.text, page=1, lines=((0, (0, 0, 9, 9)),))]),
    "Takes": lambda: lambda item: False,
    "Callable[[ContentItem], bool]": lambda: lambda item: False,
    "Senses": Senses,
    "Json": lambda: {"max_tokens": 9000},
    "Manner": Manner,
    "Asking": Asking,
    "AccessKey": lambda: AccessKey("AKIA", "secret"),
    "ModelFacts": ScriptedModel,
    "BaseChatModel": ScriptedModel,
    "Cite": lambda: lambda numbers: "",
    "Cite | None": lambda: None,
    "Literal['user', 'assistant']": lambda: "user",
    "BubbleState": lambda: "done",
    "Open": lambda: Open((), (), {}),
    "Part": lambda: Part("page", 1, 1),
    "Vocabulary": lambda: Vocabulary(
        {"amount": (0,), "a a": (1,)}, ["number", "text"], ["", ""], {"north": {1: ("North",)}}, frozenset({"orders"})
    ),
    "RowQuestion": lambda: RowQuestion("sum", 0, (VALUES["Condition"](),)),
    "tuple[Condition, ...]": tuple,
    "Wording": lambda: re.compile("a"),
    "list[Token]": list,
    "Answer": lambda: Answer(("a",), ((1,),), 1, (), (), (), ()),
    "Column | None": lambda: Column("Amount", "number"),
    "Fragment": lambda: Fragment("in the West"),
    "Callable[[str], Answer]": lambda: _unanswered,
    "Computing": lambda: Computing(VALUES["Named"](), VALUES["Vocabulary"](), _unanswered, "en", []),
    "Condition": lambda: Condition(0, "=", ("2024-03",)),
    "Column": lambda: Column("Amount", "number"),
    "Table": lambda: Table(1, "Orders", 1, 2, (Column("Amount", "number"), Column("Region", "text")), sheet=True),
    "Named": lambda: Named("orders", "a.xlsx", "d", Path("a"), VALUES["Table"]()),
    "Source": lambda: Source(VALUES["Named"](), ((1, 2),), ()),
    "Sequence[Named]": list,
    "tuple[tuple[str, str], ...]": lambda: (("a", "a"),),
    "Sense": lambda: "picture",
    "Literal['nothing', 'coming']": lambda: "nothing",
    "Mapping[int, int]": lambda: {1: 2},
    "Sequence[Document]": list,
    "Iterable[Event | Logged]": list,
    "AsyncIterable[Event | Logged]": _said,
    "Collection[Passage]": list,
    "Collection[Passage] | None": lambda: None,
    "Judging | None": Judging,
    "Embed": lambda: lambda texts: numpy.zeros((len(texts), 2)),
}


def _unanswered(_: str) -> Answer:
    raise ToolError("The tables cannot be read now.")


# How an instance is made ("module:Class"), or the other arguments of a call ("module:name()"), where annotations do
# not say enough.
MADE: Mapping[str, Callable[[], Any]] = {
    "core.rag.question_tokens:Vocabulary": VALUES["Vocabulary"],
    "core.rag.claims.bound:Row": lambda: Row(frozenset(["open", "status"]), {0: figures_of("12")}, "rows"),
    "core.agents.small_title:Naming": lambda: naming("Where is the rain in Spain?", ""),
    "core.messages.message:FunctionCall": lambda: FunctionCall("a", "{}"),
    "core.agents.react:_StepReader": lambda: hidden("core.agents.react", "_StepReader")(
        REQUEST, StepParser(["a"]), begun=""
    ),
    "core.agents.compat.articles:_Text": lambda: hidden("core.agents.compat.articles", "_Text")(None, 9),
    "core.agents.arguments:check_keywords()": lambda: {"tools": []},
    "core.agents.handoff:Handoff": lambda: Handoff(BasicAgent(name="a")),
    "core.agents.output:OutputType": lambda: OutputType.of(dict[str, int]),
    "core.agents.file_library:FileLibrary": lambda: FileLibrary(["a.txt"], RAGConfig()),
    "core.mcp.journal:ServerLog": lambda: ServerLog(["a secret"]),
    "core.export.redaction:Redaction": lambda: Redaction(["a secret"]),
    "core.importing.tree:_Turn": lambda: hidden("core.importing.tree", "_Turn")("a", None, "assistant", 0.0),
    "core.storage.excerpts:Sought": lambda: Sought.of("a b"),
    "core.export.markdown:speaker()": lambda: {"words": LABELS["en"]},
    "core.llm.tokens:Counter.shortened()": lambda: {"limit": 20},
    "core.agents.tool_loop:with_citations()": lambda: {"events": _said()},
    "webui.uploads:Uploads": cache(lambda: Uploads(Path(mkdtemp()), 1_000_000)),
    "webui.render.markdown:Inline": lambda: Inline(None, lambda alt, src: alt),
    "core.llm.backends.openai.model:Quirks.learn()": lambda: {"sent": {"stream": True, "messages": []}},
}

# What says of a poor text that it is poor, with an error of Python's own.
REFUSING = frozenset(
    {
        "core.agents.compat.group_chat_creator:proposal",
        "core.agents.output:OutputType.read",
        "core.backup.contents:Manifest.from_json",
        "core.importing.own_json:read",
        "core.messages.json_text:finite",
        "core.messages.json_text:read_loose",
        "core.messages.json_text:read_object",
        "core.messages.json_text:read_value",
        "core.setting_kinds:check_address",
        "core.setting_kinds:check_host",
        "core.tools.builtin.skills:parse_skill",
    }
)
