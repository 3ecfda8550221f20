"""A new tool, model, agent, parser, calling template or search service is one new file and one line of a catalog.

One of each is added to a copy of the source in just this way; then the contract tests run on it by themselves. A panel
of the page is four files: its own, the catalog, and its words in two languages.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]


class Addition(NamedTuple):
    """One line of a catalog, which goes below the line that holds `after`, and one file."""

    catalog: str
    after: str
    line: str
    file: str
    text: str


TOOL = Addition(
    "core/tools/catalog.py",
    '"calculator": ToolEntry(',
    '        "shout": ToolEntry("core.tools.builtin.shout:Shout", page="on", small=True),',
    "core/tools/builtin/shout.py",
    '''
from core.tools.base import BaseTool


class Shout(BaseTool):
    """Says it louder."""

    name = "shout"
    description = "Repeats a text in capital letters."
    parameters = {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to repeat."}},
        "required": ["text"],
    }
    labels = {"en": "Shouting", "zh": "大声说"}
    about = {"en": "Says it louder.", "zh": "说得更响。"}
    wishes = {"en": "say it louder", "zh": "大声说出来"}

    def call(self, params, **kwargs):
        return self._verify_json_format_args(params)["text"].upper()
''',
)
MODEL = Addition(
    "core/llm/catalog.py",
    '"openai": Entry(',
    '        "echo": Entry("core.llm.backends.echo:EchoModel"),',
    "core/llm/backends/echo.py",
    '''
from core.llm.base import BaseChatModel
from core.messages.events import MessageFinished, MessageStarted, TextDelta


class EchoModel(BaseChatModel):
    """Repeats the question."""

    model_type = "echo"
    default_model = "echo"
    in_process = True

    async def _stream(self, request):
        yield MessageStarted()
        for word in request.messages[-1].get_text_content().split():
            yield TextDelta(f"{word} ")
        yield MessageFinished("stop")
''',
)
AGENT = Addition(
    "core/agents/catalog.py",
    '"BasicAgent": Entry(',
    '        "PlainSpeaker": Entry("core.agents.plain_speaker:PlainSpeaker"),',
    "core/agents/plain_speaker.py",
    '''
from core.agents.basic import BasicAgent


class PlainSpeaker(BasicAgent):
    """Passes on what its model says."""
''',
)
PARSER = Addition(
    "core/rag/parsers/catalog.py",
    '"data_text": Entry(',
    '    "lamp": Entry("core.rag.parsers.lamp:LampParser"),',
    "core/rag/parsers/lamp.py",
    '''
from core.rag.document import About, Block
from core.rag.parsers.base import PLAIN, ending


class LampParser:
    """Reads a letter in each pair of bytes."""

    def accepts(self, name, head):
        return "text/x-lamp" if ending(name) == ".lamp" else ""

    def parse(self, path, name, options=PLAIN):
        yield About(title=name)
        yield Block("paragraph", path.read_text()[::2])
''',
)
TEMPLATE = Addition(
    "core/llm/calling/catalog.py",
    '"qwen": Entry(',
    '    "loud": Entry("core.llm.calling.loud:LoudTemplate"),',
    "core/llm/calling/loud.py",
    '''
from core.llm.calling.nous import NousTemplate


class LoudTemplate(NousTemplate):
    """As the one that it follows."""
''',
)
SEARCH_SERVICE = Addition(
    "core/tools/web/catalog.py",
    '"serper": Entry(',
    '        "almanac": Entry("core.tools.web.almanac:Almanac"),',
    "core/tools/web/almanac.py",
    '''
from core.tools.web.base import SearchService


class Almanac(SearchService):
    """Knows nothing yet."""
''',
)
PANEL = Addition(
    "webui/panels/catalog.py",
    "from webui.panels.demo import demo_html",
    "from webui.panels.lamp import lamp_html",
    "webui/panels/lamp.py",
    '''
from webui.render.markup import escaped


def lamp_html(scene):
    """A lamp for each conversation."""
    return f"<p>{escaped(scene.words('lamp.lit', title=scene.title))}</p>"
''',
)
PANEL_LINES = {
    "webui/panels/catalog.py": ('    Panel("demo", "below", _demo),', '    Panel("lamp", "below", lamp_html),'),
    "webui/words/en.toml": ('"top.untitled" = "New chat"', '"lamp.lit" = "A lamp for {title}"'),
    "webui/words/zh.toml": ('"top.untitled" = ', '"lamp.lit" = "{title} 的灯"'),
}
ADDITIONS = (TOOL, MODEL, AGENT, PARSER, TEMPLATE, SEARCH_SERVICE, PANEL)

_USED = """
from pathlib import Path

from core import Assistant
from core.llm.calling.catalog import TEMPLATES
from core.rag.library import Library
from core.rag.parsers.catalog import parser_for
from core.tools.web.catalog import SEARCH_SERVICES

page = Path("notes.lamp")
page.write_text("".join(f"{letter}-" for letter in "The lamp is green."))
assert parser_for(page.name, page.read_bytes()) == ("lamp", "text/x-lamp")
with Library.open(Path("library"), {"retrieval_type": "keyword"}) as library:
    library.add(page)
    assert [passage.text for passage in library.find("lamp")] == ["The lamp is green."]
assert TEMPLATES["loud"]().reader is not None
assert SEARCH_SERVICES["almanac"].__name__ == "Almanac"
speaker = Assistant(llm={"model_type": "echo"}, function_list=["shout"])
assert "hello" in speaker.run_nonstream([{"role": "user", "content": "hello"}])[-1]["content"]
"""


_ON_THE_PAGE = """
import asyncio
from pathlib import Path

from core.settings import Settings
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.toolbox.code_interpreter import OwnerInterpreter
from core.toolbox.toolbox import Toolbox
from webui.panels.tools import tools_data
from webui.render.tool_words import label_of
from webui.words import Words


async def main():
    database = await Database.open(Path("parlour.db"))
    sealer = Sealer("secret")
    tools = Toolbox(Stores(database, Path("files"), sealer), sealer, Settings.load(home=Path("home"))).of("alice")
    for lang, label, about in (("en", "Shouting", "Says it louder."), ("zh", "大声说", "说得更响。")):
        words = Words(lang)
        shown = {one["name"]: one for one in tools_data(await tools.listed(), OwnerInterpreter(), words)}["shout"]
        assert (shown["label"], shown["about"], shown["on"], shown["available"]) == (label, about, True, True), shown
        assert label_of("shout", words) == label
    for small in (False, True):
        assert "shout" in [tool.name for tool in await tools.for_model("talk", small=small)]
    await tools.switch("shout", on=False)
    assert "shout" not in [tool.name for tool in await tools.for_model("talk")]
    await database.aclose()


asyncio.run(main())
"""


_A_PANEL = """
from core.readiness import Readiness
from webui.panels.catalog import PANELS, Scene
from webui.words import Words

panel = next(one for one in PANELS if one.name == "lamp")
assert panel.place == "below"
for lang, said in (("en", "A lamp for Rome"), ("zh", "Rome 的灯")):
    drawn = panel.draw(Scene(Words(lang), Readiness(), title="Rome"))
    assert drawn == f"<p>{said}</p>", drawn
"""


def _below(root: Path, file: str, after: str, line: str) -> None:
    """Put a line below the one that holds `after`."""
    path = root / file
    below = re.compile(rf"^.*{re.escape(after)}.*$", re.MULTILINE)
    text, changes = below.subn(lambda found: f"{found[0]}\n{line}", path.read_text("utf-8"))
    assert changes == 1, file
    path.write_text(text, "utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source with one of each added."""
    root = tmp_path_factory.mktemp("house")
    for folder in ("core", "webui", "tests/contract"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    helpers = [path for path in (ROOT / "tests").glob("*.py") if not path.name.startswith("test_")]
    for file in (ROOT / "pyproject.toml", ROOT / "tests/slow.txt", *helpers):
        shutil.copy2(file, root / file.relative_to(ROOT))
    for one in ADDITIONS:
        _below(root, one.catalog, one.after, one.line)
        new = root / one.file
        assert not new.exists()
        new.write_text(one.text, "utf-8")
    for file, (after, line) in PANEL_LINES.items():
        _below(root, file, after, line)
    return root


def _in(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=root, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_one_file_and_one_line_make_each_of_them_usable(copy: Path) -> None:
    _in(copy, "-c", _USED)


def test_a_tool_that_its_line_offers_on_the_page_is_there_with_its_own_words_and_can_be_switched_off(
    copy: Path,
) -> None:
    _in(copy, "-c", _ON_THE_PAGE)


def test_a_panel_of_the_page_is_four_files(copy: Path) -> None:
    _in(copy, "-c", _A_PANEL)
    assert len({PANEL.file, *PANEL_LINES}) == 4


def test_the_contract_tests_run_on_what_was_added_by_themselves(copy: Path) -> None:
    tested = "shout or echo or PlainSpeaker"
    files = [f"tests/contract/{name}.py" for name in ("test_tools", "test_models", "test_agents")]
    said = _in(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", tested, "-rA", *files)
    ran = re.findall(r"^PASSED \S+\[(\w+)", said, re.MULTILINE)
    assert min(ran.count(name) for name in ("shout", "echo", "PlainSpeaker")) >= 5
