"""The tools there are, by name: Parlour's own, and those of packages with entry points in the group `parlour.tools`."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from core.errors import ParlourError, SettingsError
from core.registry import Entry, Registry, check_class, check_name
from core.tools.base import BaseTool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


GROUP = "parlour.tools"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolEntry(Entry):
    """Where the class of a tool lives that the page offers.

    Args:
        page: Whether it is `on` until an owner switches it off, or `off` until one switches it on. What goes online is
            for the owner to switch on.
        small: Whether small models are offered it as well.
    """

    page: Literal["on", "off"] = "off"
    small: bool = False


@dataclass(frozen=True, slots=True)
class PageTool:
    """A tool that the page offers.

    Args:
        name: Its name in the registry.
        on: Whether it is offered unless it is switched off.
        small: Whether small models are offered it as well.
    """

    name: str
    on: bool = False
    small: bool = False


class ToolRegistry(Registry[type[BaseTool]]):
    """The tools that ship with Parlour, those a program adds, and those of plug-ins.

    Plug-ins are looked for when somebody lists the names, or asks for one that is not known otherwise. One that is
    broken is left out, and said in the log.
    """

    _looked = False
    _plug_ins: tuple[str, ...] = ()

    @property
    def plug_ins(self) -> tuple[str, ...]:
        """The names that plug-ins brought."""
        self._look()
        return self._plug_ins

    def __getitem__(self, name: str) -> type[BaseTool]:
        """The class of a tool.

        Raises:
            UnknownNameError: There is none of that name.
            MissingExtraError: A package it needs is not installed.
        """
        if not super().__contains__(name):
            self._look()
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        self._look()
        return super().__iter__()

    def __len__(self) -> int:
        self._look()
        return super().__len__()

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        self._look()
        return super().__contains__(name)

    def on_page(self) -> tuple[PageTool, ...]:
        """What the page offers, in its order: Parlour's own, and those of plug-ins, each of which is off at first."""
        ours = [
            PageTool(name, on=entry.page == "on", small=entry.small)
            for name, entry in self._entries.items()
            if isinstance(entry, ToolEntry)
        ]
        return (*ours, *(PageTool(name) for name in self.plug_ins))

    def made(self, name: str, cfg: Mapping[str, Any] | None = None) -> BaseTool:
        """A tool by its name.

        Raises:
            UnknownNameError: There is none of that name.
            SettingsError: It cannot be made; whatever a plug-in raises becomes this.
        """
        kind = self[name]
        try:
            return kind(cfg)
        except ParlourError:
            raise
        except Exception as error:  # a stranger's code: whatever it raises must not end what lists the tools
            if name not in self._plug_ins:
                raise
            _log.exception("The plug-in of the tool %r cannot be used.", name)
            raise SettingsError(f"The tool {name!r} cannot be used: {type(error).__name__}.") from error

    def _look(self) -> None:
        if not self._looked:
            self._looked = True
            self.take(entry_points(group=GROUP))

    def take(self, points: Iterable[EntryPoint]) -> None:
        """Add the tools of these entry points; whatever is wrong with one harms no other."""
        for point in points:
            if super().__contains__(point.name):
                _log.warning("The plug-in %s is left out: there is already a tool named %r.", point.value, point.name)
                continue
            found = _loaded(point)
            if found is not None:
                self.add(point.name, found)
                self._plug_ins += (point.name,)


def _loaded(point: EntryPoint) -> type[BaseTool] | None:
    try:
        found: Any = point.load()
    except (Exception, SystemExit):  # noqa: BLE001 - somebody else's code, said in the log
        _log.warning("The plug-in %s of the tool %r cannot be loaded.", point.value, point.name, exc_info=True)
        return None
    if not isinstance(found, type) or not issubclass(found, BaseTool):
        _log.warning("The plug-in %s is left out: it is no BaseTool class.", point.value)
        return None
    if found.name and found.name != point.name:
        _log.warning("The plug-in %s is left out: it is named %r, not %r.", point.value, found.name, point.name)
        return None
    if not found.name:
        found.name = point.name
    return found


T = TypeVar("T", bound=type[BaseTool])

TOOL_REGISTRY = ToolRegistry(
    "tool",
    {
        # Those that the page offers, in its order.
        "calculator": ToolEntry("core.tools.builtin.calculator:Calculator", page="on", small=True),
        "current_time": ToolEntry("core.tools.builtin.current_time:CurrentTime", page="on", small=True),
        "code_interpreter": ToolEntry("core.tools.builtin.code_interpreter:CodeInterpreter", page="on", small=True),
        "use_skill": ToolEntry("core.tools.builtin.skills:UseSkill", page="on", small=True),
        "run_skill_script": ToolEntry("core.tools.builtin.skills:RunSkill", page="on"),
        "web_search": ToolEntry("core.tools.builtin.web_search:WebSearch", page="off"),
        "web_extractor": ToolEntry("core.tools.builtin.web_extractor:WebExtractor", page="off"),
        "image_search": ToolEntry("core.tools.builtin.web_search:ImageSearch", page="off"),
        "storage": ToolEntry("core.tools.builtin.storage:Storage", page="off"),
        "image_zoom_in_tool": ToolEntry("core.tools.builtin.image_zoom_in_tool:ImageZoomInTool", page="off"),
        "image_gen": ToolEntry("core.tools.builtin.image_gen:ImageGen", page="off"),
        "amap_weather": ToolEntry("core.tools.builtin.amap_weather:AmapWeather", page="off"),
        # For programs alone.
        "doc_parser": Entry("core.tools.builtin.doc_parser:DocParser"),
        "extract_doc_vocabulary": Entry("core.tools.builtin.doc_parser:ExtractDocVocabulary"),
        "front_page_search": Entry("core.tools.builtin.document_search:FrontPageSearch"),
        "hybrid_search": Entry("core.tools.builtin.document_search:HybridSearch"),
        "python_executor": Entry("core.tools.builtin.code_interpreter:PythonExecutor"),
        "keyword_search": Entry("core.tools.builtin.document_search:KeywordSearch"),
        "retrieval": Entry("core.tools.builtin.document_search:Retrieval"),
        "simple_doc_parser": Entry("core.tools.builtin.doc_parser:SimpleDocParser"),
        "vector_search": Entry("core.tools.builtin.document_search:VectorSearch"),
    },
)
"""The tools, by name: a mapping. Naming them imports nothing; `register_tool` adds one."""


class ToolNameError(SettingsError, ValueError):
    """A tool's name is taken, or two names contradict each other."""


def register_tool(name: str, allow_overwrite: bool = False) -> Callable[[T], T]:  # noqa: FBT001, FBT002 - Qwen-Agent's signature
    """A decorator that puts a `BaseTool` class under `name`; `allow_overwrite` lets it take the place of another.

    Raises:
        ToolNameError: The name is taken, or the class already has another one. It is a `ValueError` too.
        SettingsError: `name` is no text, or empty.
    """
    check_name(name, "register_tool")

    def add(cls: T) -> T:
        check_class(cls, "register_tool", "BaseTool")
        if cls.name and cls.name != name:
            raise ToolNameError(f"{cls.__name__} is named {cls.name!r}, which conflicts with {name!r}.")
        if name in TOOL_REGISTRY:
            if not allow_overwrite:
                raise ToolNameError(
                    f"There is already a tool named {name!r}.",
                    hint="Choose another name, or pass allow_overwrite=True.",
                )
            _log.warning("The tool %r already exists; %s takes its place.", name, cls.__name__)
        cls.name = name
        TOOL_REGISTRY.add(name, cls)
        return cls

    return add
