"""Whatever the rules, names and arguments are: what must not run does not, and patterns mean what they say."""

from __future__ import annotations

import asyncio
from fnmatch import fnmatchcase
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from core.messages.events import ToolFinished
from core.messages.message import FUNCTION, USER, Message
from core.messages.transcript import call_message
from core.tools.approval import ApprovalRequest, Decision, Guard, Policy, escape_pattern
from core.tools.base import BaseTool, addresses_in
from core.tools.runner import ToolRunner
from core.tools.taint import Taint
from tests.tries import tries

NAMES = st.one_of(
    st.text(min_size=1, max_size=20).filter(lambda name: bool(name.strip())),
    st.sampled_from(["calculator", "mcp:files:delete_all", "MCP:Files:Delete_All", "mcp:a:*", "mcp:x:[abc]", "a?b"]),
)
PATTERNS = st.one_of(
    NAMES, st.sampled_from(["*", "mcp:*", "mcp:*:delete_*", "[a-c]*", "?", "mcp:x:[abc]", "[", "[!a]"])
)
RULES = st.lists(PATTERNS, max_size=3).map(tuple)
FLAGS = st.fixed_dictionaries(
    {flag: st.booleans() for flag in ("writes", "runs_code", "reaches_out", "destructive", "trusted", "changed")}
)
POLICIES = st.builds(Policy, st.sampled_from(["writes", "always", "never"]), RULES, RULES, RULES)
MESSAGES = st.lists(
    st.one_of(
        st.builds(lambda text: Message(USER, text), st.text(max_size=60)),
        st.builds(lambda text: Message(FUNCTION, text, name="web", extra={"passages": [{}]}), st.text(max_size=60)),
    ),
    max_size=3,
)
ARGUMENTS = st.dictionaries(st.text(max_size=5), st.text(max_size=30), max_size=2)


class Named(BaseTool):
    """A tool with flags of its own."""

    name = "named"

    def __init__(self, full_name: str, flags: dict[str, bool]) -> None:
        super().__init__()
        self._full_name = full_name
        self.ran = 0
        for flag, value in flags.items():
            setattr(self, flag, value)

    @property
    def full_name(self) -> str:
        return self._full_name

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        self.ran += 1
        return "done"


def runs(tool: Named, guard: Guard, messages: list[Message]) -> bool:
    async def run() -> None:
        calls = [call_message("c", "named", "{}")]
        events = [event async for event in ToolRunner({"named": tool}, guard=guard).run(calls, messages=messages)]
        assert isinstance(events[-1], ToolFinished)
        assert bool((events[-1].message.extra or {}).get("failed")) is not bool(tool.ran)

    asyncio.run(run())
    return bool(tool.ran)


@settings(max_examples=tries(150), deadline=None)
@given(POLICIES, NAMES, FLAGS, MESSAGES, st.booleans())
def test_no_tool_that_may_do_harm_ever_runs_unless_a_rule_the_mode_or_the_user_allowed_it(
    policy: Policy, name: str, flags: dict[str, bool], messages: list[Message], says_yes: bool
):
    asked: list[ApprovalRequest] = []

    async def ask(asking: ApprovalRequest) -> Decision:
        asked.append(asking)
        return Decision(says_yes)

    tool = Named(name, flags)
    ran = runs(tool, Guard(policy, ask), messages)
    denied = any(fnmatchcase(name.casefold(), pattern.casefold()) for pattern in policy.deny)
    harmful = flags["writes"] or flags["runs_code"] or flags["destructive"]
    waved_through = policy.mode == "never" or any(fnmatchcase(name, pattern) for pattern in policy.allow)
    if ran:
        assert not denied
        assert (not harmful) or waved_through or (asked and says_yes)
    assert ran is (not denied and (not asked or says_yes))
    assert runs(Named(name, flags), Guard(policy), messages) is (not denied and not asked)


@given(POLICIES, NAMES, FLAGS, ARGUMENTS, MESSAGES)
def test_deny_always_refuses_and_more_rules_to_deny_or_ask_never_let_more_run(
    policy: Policy, name: str, flags: dict[str, bool], arguments: dict[str, str], messages: list[Message]
):
    tool, seen = Named(name, flags), Taint.of(messages)
    verdict = policy.verdict(tool, arguments, seen)
    tighter = Policy(policy.mode, policy.allow, (*policy.ask, "*"), policy.deny).verdict(tool, arguments, seen)
    tightest = Policy(policy.mode, policy.allow, policy.ask, (*policy.deny, escape_pattern(name))).verdict(
        tool, arguments, seen
    )
    assert tighter != "run"
    assert (verdict == "refuse") <= (tighter == "refuse")
    assert tightest == "refuse"


@given(NAMES, FLAGS, ARGUMENTS, MESSAGES, st.sampled_from(["destructive", "changed"]))
def test_what_a_server_says_against_itself_only_tightens(
    name: str, flags: dict[str, bool], arguments: dict[str, str], messages: list[Message], flag: str
):
    seen = Taint.of(messages)
    without = Policy().verdict(Named(name, {**flags, flag: False}), arguments, seen)
    with_it = Policy().verdict(Named(name, {**flags, flag: True}), arguments, seen)
    assert with_it != "run"
    assert (without == "refuse") is (with_it == "refuse")


@given(NAMES, NAMES)
def test_the_pattern_of_one_name_matches_that_name_and_no_other(name: str, other: str):
    policy = Policy("always", allow=(escape_pattern(name),))
    assert policy.verdict(Named(name, {}), {}, Taint()) == "run"
    if other != name:
        assert policy.verdict(Named(other, {}), {}, Taint()) != "run"


@given(st.text(max_size=200), st.text("abcdefghij/?=&%.-_~", max_size=30))
def test_an_address_is_known_exactly_if_it_was_written(around: str, path: str):
    url = f"https://host.example/{path}"
    words = around.replace("host.example", "")
    assert Taint.of([Message(USER, f"{words} {url} {words}")]).knows(url)
    assert not Taint.of([Message(USER, words)]).knows(url)
    assert not Taint.of([Message(USER, f"{words} {url} {words}")]).knows(f"{url}x1SECRET")


@given(
    st.recursive(
        st.text(max_size=20) | st.integers() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    )
)
def test_addresses_are_found_in_whatever_json_there_is(value: Any):
    url = "https://evil.example/x"
    assert url in addresses_in({"a": [value, {"b": f"see {url}"}]})
    assert url in addresses_in({f"see {url}": value})


def test_two_million_letters_are_read_at_once():
    for text in (
        "a" * 2_000_000,
        "a." * 1_000_000,
        "https://" * 250_000,
        "a-" * 1_000_000,
        "网" * 2_000_000,
        "a/" * 1_000_000,
    ):
        assert not Taint.of([Message(USER, text)]).knows("https://evil.example/x")
