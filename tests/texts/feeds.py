"""How the functions that take text are called: their other arguments, and those that nobody else's text reaches."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from core.agents.file_library import FileLibrary
from core.agents.react_parser import StepParser
from core.export.redaction import Redaction
from core.llm.calling.qwen import MarkedBody
from core.llm.calling.tag_scanner import TAGGED
from core.llm.request import ChatRequest
from core.llm.wire.tools import ToolNames
from core.mcp.journal import Journal
from core.mcp.settings import ServerSettings
from core.messages.content import ContentItem
from core.messages.message import FunctionCall, Message
from core.models.menu import service_named
from core.rag.config import RAGConfig
from core.rag.document import Passage
from core.rag.parsers.base import PLAIN
from core.settings import Settings
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
        "documents",
        "media_type",
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


def hidden(module: str, name: str) -> Any:
    """What a module has for itself."""
    return vars(import_module(module))[name]


def _passages() -> list[Passage]:
    return [PASSAGE]


# What stands for an argument with this annotation.
VALUES: Mapping[str, Callable[[], Any]] = {
    "str": lambda: "a",
    "str | None": lambda: "a",
    "int": lambda: 1_000,
    "int | None": lambda: 1,
    "float": lambda: 1.0,
    "bool": lambda: False,
    "bytes": lambda: b"a",
    "object": lambda: None,
    "Any": lambda: None,
    "Path": lambda: Path("a.txt"),
    "str | Path": lambda: "a.txt",
    "Lang": lambda: "en",
    "Words": lambda: Words("en"),
    "Callable[[str], Words]": lambda: Words,
    "Settings": Settings,
    "Sequence[str]": lambda: ["a"],
    "Iterable[str]": lambda: ["a"],
    "Collection[str]": lambda: ["a"],
    "tuple[str, ...]": lambda: ("a",),
    "list[str]": lambda: ["a"],
    "Path | str | bytes": lambda: "a.txt",
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
    "Message": lambda: Message("user", "a"),
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
    "Tags": lambda: TAGGED,
    "Body": MarkedBody,
    "OutputParser": lambda: StepParser(["a"]),
    "Journal": Journal,
    "ServerSettings": lambda: ServerSettings.model_validate({"url": "http://127.0.0.1/"}),
    "Mapping[str, GivenFile]": dict,
    "datetime": lambda: datetime(2026, 1, 1, tzinfo=UTC),
    "MenuService": lambda: service_named("openai", local=True),
    "BlockKind": lambda: "text",
    "sqlite3.Connection": lambda: sqlite3.connect(":memory:"),
    "ParseOptions": lambda: PLAIN,
    "float | None": lambda: None,
    "re.Pattern[str]": lambda: re.compile("a"),
}


# How an instance is made ("module:Class"), or the other arguments of a call ("module:name()"), where annotations do
# not say enough.
MADE: Mapping[str, Callable[[], Any]] = {
    "core.messages.message:FunctionCall": lambda: FunctionCall("a", "{}"),
    "core.agents.react:_StepReader": lambda: hidden("core.agents.react", "_StepReader")(
        REQUEST, StepParser(["a"]), begun=""
    ),
    "core.agents.compat.articles:_Text": lambda: hidden("core.agents.compat.articles", "_Text")(None, 9),
    "core.agents.arguments:check_keywords()": lambda: {"tools": []},
    "core.agents.file_library:FileLibrary": lambda: FileLibrary(["a.txt"], RAGConfig()),
    "core.mcp.journal:Journal": lambda: Journal(["a secret"]),
    "core.export.redaction:Redaction": lambda: Redaction(["a secret"]),
    "core.llm.tokens:Counter.shortened()": lambda: {"limit": 20},
    "core.llm.backends.openai.model:Quirks.learn()": lambda: {"sent": {"stream": True, "messages": []}},
}

# Functions that are not fed, by pattern, and why.
EXCUSED: Mapping[str, str] = {
    "core.storage.*": "values go into statements of fixed form; names are cut to their length",
    "core.testing*": "plays services in tests",
    "core.backup.*": "names in a backup, of which the manifest says how many",
    "core.workspace.*": "hands it on",
    "core.bridge.*": "keys of the house",
    "core.limits:*": "keys of the house",
    "core.registry:*": "names that programs register",
    "core.readiness:*": "names of the house",
    "core.settings:*": "what stands in the environment of who starts the house",
    "core.runs.[!m]*": "hands on names that were checked when they came",
    "core.runs.manager:*": "hands on names that were checked when they came",
    "core.runs.claim_check:*": "sentences that claims_of found",
    "core.reading.[!al]*": "hands it on",
    "core.reading.libraries:*": "a name of at most a line",
    "core.models.*": "what an owner types into a field",
    "core.toolbox.*": "hands it on",
    "core.rag.context_builder:*": "an index in a thread of its own; words are read by terms()",
    "core.rag.document_locks:*": "an index in a thread of its own; words are read by terms()",
    "core.rag.draft:*": "an index in a thread of its own; words are read by terms()",
    "core.rag.ingest:*": "an index in a thread of its own; words are read by terms()",
    "core.rag.originals:*": "an index in a thread of its own; words are read by terms()",
    "core.rag.re*": "an index in a thread of its own; words are read by terms()",
    "core.rag.search.stored_vectors:[!p]*": "an index in a thread of its own; words are read by terms()",
    "core.rag.library:*": "an index in a thread of its own; what it reads with is fed alone",
    "core.rag.page*": "an index in a thread of its own; words are read by terms()",
    "core.rag.places:*": "pages that a parser read, whose words are bounded",
    "core.rag.embedding.*": "a process of its own, which is given pieces that were cut before",
    "core.rag.search.[!t]*": "an index in a thread of its own; words are read by terms()",
    "core.rag.sources:*": "the address of a page",
    "core.rag.parsers.*:*.*": "a process of its own, which is ended after its time; the text alone is fed below",
    "core.rag.parsers.[acosw]*": "a process of its own; names and passwords alone are text",
    "core.rag.parsers.process:*": "starts that process",
    "core.rag.parsers.pdf_pdfium:*": "a process of its own; a password alone is text",
    "core.rag.parsers.pdf_mupdf:*": "a process of its own; a password alone is text",
    "core.rag.parsers.base:is_ideograph": "one letter",
    "core.rag.attribution:_Checker.*": "its sentences are those of claims_of",
    "core.rag.document:*": "rows that a parser read",
    "core.llm.backends.transformers*": "weights of one's own",
    "core.llm.backends.*:*Translator.m*": "words of the house",
    "core.llm.backends.openai.service:default_key": "settings of the owner",
    "core.llm.base:*": "hands it on",
    "core.llm.[agprsw][!h]*:*": "settings of the owner, names of models, tables of the house",
    "core.llm.tokens:Vocabulary.*": "files that come with a model",
    "core.llm.validation:check_*": "settings of the owner",
    "core.llm.local_files:check_local_model": "names of models",
    "core.llm.tokens:counter_for": "the name of a model",
    "core.llm.tokens:shortened": "fed as Counter.shortened, with the count that belongs to it",
    "core.llm.[cmot]*:c*_*": "settings of the owner",
    "core.llm.media:*": "names of files",
    "core.llm.oai_surface:*": "settings of the owner",
    "core.llm.open_model:*": "settings of the owner",
    "core.llm.telemetry:*": "names of the house",
    "core.llm.calling.call_text:call_events": "ids of calls that were read",
    "core.llm.calling.json_schema:[ae]*": "names of tools, which are bounded",
    "core.llm.calling.tag_scanner:[MS]*.*": "compiles the tags of the house",
    "core.llm.calling.tag_scanner:Tags.*": "looks at where the body of a call begins",
    "core.agents.config*": "settings of who writes the program",
    "core.agents.group_c*": "settings of who writes the program",
    "core.agents.compat.group_c*:Group*": "settings of who writes the program",
    "core.agents.base:Agent.from_config": "settings of who writes the program",
    "core.agents.arguments:checked_int": "names of settings",
    "core.agents.hub:[cjm]*": "names of agents, which are those of the program",
    "core.agents.file_library:*[Ll]ibrary*": "settings of who writes the program",
    "core.judging.[!jm]*": "files of who starts the evaluation",
    "core.mcp.s[eit]*:*": "starts servers, and hands on",
    "core.net.addresses:is_own_[rs]*": "marks of the house",
    "core.net.addresses:[s_]*": "marks of the house",
    "core.tools.builtin.*": "arguments are read by read_arguments, and bounded by what they name",
    "core.tools.sandbox.*": "programs with limits of their own",
    "core.tools.[dfkps]*": "files and names of the owner's; arguments are read by read_arguments",
    "core.tools.given_files:p*": "names of the owner's files",
    "core.tools.catalog:*": "names that programs register",
    "core.tools.results:*": "names of tools",
    "core.tools.notes:*": "names of the house",
    "core.tools.base:*": "hands it on, and names of settings",
    "core.tools.openapi.[a-co-z]*": "documents as they were read, which are bounded",
    "core.tools.web.base:*": "names of services",
    "core.tools.web.main_text_worker:*": "a process of its own, which is ended after its time",
    "webui.commands*": "the command line of who starts the house",
    "webui.panels.*": "escaped, nothing else; what is long in it is fed as escaped()",
    "webui.render.[cder]*:*": "escaped, nothing else, or handed to markdown()",
    "webui.render.markdown:Inline.*": "handed on by markdown()",
    "webui.render.markup:note_index": "one letter",
    "webui.[!r]*": "lines of a request, which the server bounds at 64 kB together, and words of the house",
}

# Of those, what is fed nevertheless.
FED = frozenset(
    {"core.storage.files:shown_name", "core.storage.conversations:clean", "webui.render.markdown:drawable"}
    | {"core.tools.taint:Seen.knows", "core.tools.approval:exactly", "core.llm.tokens:boundary"}
    | {"core.llm.request:has_chinese"}
    | {"webui.uploads:harmless_name", "webui.handlers.send:pages_to_read", "core.tools.arguments:extract_code"}
    | {"core.tools.results:cut_to_ends", "core.mcp.settings:risks_of", "core.toolbox.server_form:pasted"}
    | {"core.judging.checks:verdict", "core.settings:check_address"}
    | {"core.agents.react_actions:read_action", "core.agents.react_actions:read_untagged"}
)
