"""What ruff cannot see: sizes, names, the public page, and what importing the library costs nobody."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 80
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
TOPS = (".ci", "assets", "bench", "core", "deploy", "docs", "examples", "parlour", "tests", "webui")
LONGEST_NAME = 120  # characters of a path; what tests make up is longer
ALLOWED_PLACES = {Path("core/runs/manager.py")}
VENDORS = (
    "gradio",
    "fastapi",
    "openai",
    "xllamacpp",
    "sqlalchemy",
    "alembic",
    "mcp",
    "pymupdf",
    "docx",
    "numpy",
    "httpx",
)
_PUBLIC = """
    ASSISTANT AUDIO Agent AgentConfig AgentScratchpadUnit AgentThought ApprovalRequest ArticleAgent Assistant
    BaseChatModel BaseModelCompatibleDict BaseTool BaseToolWithFileAccess BasicAgent CONTENT Claim ContentItem
    ContinueWriting Decision DialogueRetrievalAgent EXTRA ExpandWriting FILE FUNCTION FUNCTION_CALL FnCallAgent
    FunctionCall GenerateConfig GroupChat GroupChatCreator Guard IMAGE LLMConfig LLM_REGISTRY Library MCPClient
    MCPManager Memory Message ModelResponse ModelServiceError MultiAgentHub NAME OutlineWriting OutputParser
    PENDING_USER_INPUT ParallelDocQA ParlourError Policy RAGConfig REASONING_CONTENT ROLE ReActChat Router SYSTEM
    Suite TEXT TIRMathAgent TOOL_REGISTRY TokenBufferMemory ToolResult USER Usage UserAgent VIDEO VirtualMemoryAgent
    WriteFromScratch acheck_claims aevaluate check_claims evaluate get_chat_model register_llm register_tool skills_in
    tool Citation Cited Confirm Limits ModelRetry OutputError Partial Reply RunContext Session Stop ToolCall afold fold
    handoff FallbackModel trace_to Score add_cases case_of compare
"""
PUBLIC_NAMES = sorted(_PUBLIC.split())


def python_files(*folders: str) -> list[Path]:
    return sorted(path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob("*.py"))


OURS = python_files("core", "webui", "parlour")
EVERYTHING = [*OURS, *python_files("tests", "bench", ".ci"), Path("build_wheel.py"), Path("set_up.py")]


@dataclass(frozen=True)
class Seen:
    """What the checks ask of a file; its tree is not kept, for every collection would go through it."""

    lines: int
    functions: tuple[tuple[str, int], ...]
    asserts: tuple[int, ...]
    says_nothing: bool
    imports: frozenset[str]


@cache
def seen(path: Path) -> Seen:
    text = (ROOT / path).read_text(encoding="utf-8")
    gc.disable()  # a tree is millions of objects, and none of them goes before the last has come
    try:
        tree = ast.parse(text)
    finally:
        gc.enable()
    found = list(statements(tree))
    return Seen(
        len(text.splitlines()),
        tuple(
            (node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
            for node in found
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
        tuple(node.lineno for node in found if isinstance(node, ast.Assert)),
        not (path.name == "__init__.py" and not tree.body) and not ast.get_docstring(tree),
        frozenset(name for node in found for name in imported(node)),
    )


def imported(node: ast.AST) -> Iterator[str]:
    """What a statement imports, wherever it stands: in a function and for types alone, too."""
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{name.name}" for name in node.names)


def circle(imports: Mapping[str, Collection[str]]) -> list[str]:
    """A circle of modules, each of which imports the one before; empty where there is none."""
    known = imports.keys()
    order = TopologicalSorter({name: known & set(used) - {name} for name, used in imports.items()})
    try:
        order.prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Each statement of a file; none stands within an expression."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, name, ()):
            yield node
            yield from statements(node)


def too_long(path: Path) -> Iterator[str]:
    lines = seen(path).lines
    if lines > MAX_FILE_LINES:
        yield f"{path} has {lines} lines; {MAX_FILE_LINES} is the wall."
    for name, length in seen(path).functions:
        if length > MAX_FUNCTION_LINES:
            yield f"{path}: {name} has {length} lines; {MAX_FUNCTION_LINES} is the wall."


def says_nothing(path: Path) -> Iterator[str]:
    if seen(path).says_nothing:
        yield f"{path} has no docstring."
    if path.stem in FORBIDDEN_NAMES and path not in ALLOWED_PLACES:
        yield f"{path}: the name says nothing."


# The files of a check are one test: thousands of tests of a millisecond each took minutes to hand out.
def test_files_and_their_functions_stay_readable() -> None:
    assert not [line for path in EVERYTHING for line in too_long(path)]


def test_modules_say_what_they_are() -> None:
    assert not [line for path in OURS for line in says_nothing(path)]


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not even in functions, and not for types alone; packages are what their modules are."""
    modules = {".".join(path.with_suffix("").parts): seen(path).imports for path in OURS if path.name != "__init__.py"}
    assert circle(modules) == []
    assert set(circle({"a": ["b", "x"], "b": ["c"], "c": ["a"], "d": ["a"]})) == {"a", "b", "c"}


def test_every_room_has_its_line_in_the_table_of_rooms() -> None:
    rows = (ROOT / "docs" / "architecture.md").read_text("utf-8").split("\n")
    told = {row.split("|")[1].split("`")[1] for row in rows if row.startswith("| `")}
    rooms = {path.parent.as_posix() for path in OURS if path.name == "__init__.py" and len(path.parts) == 3}
    assert {room for room in rooms if room.startswith("core/")} | {"webui", "parlour"} <= told


def test_assert_stays_in_tests() -> None:
    """`python -O` would turn it off."""
    found = {path: seen(path).asserts for path in OURS if seen(path).asserts}
    assert not found


def test_the_public_page_holds_these_names_and_no_other() -> None:
    import core

    assert sorted(core.__all__) == PUBLIC_NAMES


def test_every_public_name_can_be_imported() -> None:
    import core

    assert not [name for name in PUBLIC_NAMES if getattr(core, name, None) is None]


def test_importing_the_library_brings_no_vendor_along() -> None:
    code = "import sys, core; print(' '.join(name for name in sys.modules if '.' not in name))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not set(VENDORS) & set(done.stdout.split())


def test_an_agent_is_imported_without_a_client_of_services() -> None:
    code = "import sys; from core import Assistant; print(' '.join(name for name in sys.modules if '.' not in name))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"httpx", "httpx2", "openai", "mcp"} & set(done.stdout.split())


def test_no_file_knows_this_machine() -> None:
    suffixes = {".py", ".md", ".toml", ".lock", ".txt", ".css", ".js", ".json", ".svg", ".yml"}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split(
        "\n"
    )
    paths = [ROOT / name for name in listed if Path(name).suffix in suffixes and (ROOT / name).is_file()]
    signs = ("/" + "work/", "/" + "root/", "/tmp/" + "parlour", "index" + "-url", "find" + "-links=")
    own = {ROOT / ".ci" / "lock.py"}
    found = [
        f"{path.relative_to(ROOT)}: {sign}"
        for path in paths
        if path not in own
        for sign in signs
        if sign in path.read_text(encoding="utf-8")
    ]
    assert not found


def test_no_style_asks_what_a_part_holds() -> None:
    # Each rule with `:has()` is cheap, and a hundred made a browser find the styles of the whole page anew whenever
    # anything came or went: 40 ms, several times until a menu stood. `assets/js/holding.js` tells what holds what.
    styles = [*(ROOT / "assets").rglob("*.css"), *(ROOT / "webui").rglob("page_*.py")]
    assert len(styles) > 30
    assert not [path.name for path in styles if ":has(" in path.read_text(encoding="utf-8")]


def test_what_becomes_a_number_is_looked_at_with_isdecimal() -> None:
    # "\u00b2".isdigit() is true, and int("\u00b2") raises: a service or a document may say that.
    sign = re.compile(r"(\w+)\.isdigit\(\) and int\(\1|(?:int|float)\((\w+)(?:\[:\d+\])?\) if \2\.isdigit")
    found = [
        str(path.relative_to(ROOT)) for path in python_files("core", "webui") if sign.search(path.read_text("utf-8"))
    ]
    assert found == []


def test_nothing_waits_by_what_loses_a_cancelling() -> None:
    # Up to Python 3.11, `asyncio.wait_for` goes on as if nothing were where the task is cancelled at the moment when
    # what it waits for comes: a task in a loop then never ends. `asyncio.timeout` does not.
    loses = re.compile(r"asyncio\.wait_for\(|import wait_for\b")
    assert not [str(path) for path in OURS if loses.search((ROOT / path).read_text(encoding="utf-8"))]


def test_the_repository_holds_nothing_that_a_run_wrote_into_it() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    tops = {name.partition("/")[0] for name in listed.split("\0") if "/" in name}
    assert sorted(tops) == sorted(TOPS)
    assert [name for name in listed.split("\0") if len(name) > LONGEST_NAME] == []
