"""Nothing above the stores is told by name whose rows it means, but for a short list of places, each with its reason.

An owner's world is an object: stores, services and workspaces are bound to their owner where they are made. A method
that takes an owner as text could be handed another one, so a new one fails here until it is bound, or stands below.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = {"owner", "owner_id"}

FACTORIES = "binds what it gives to one owner"
BOUND = "is given its owner once, when it is made"
POOL = "the pool: an owner's workspace is opened by name"
ASKED = "says who asks, before there is a workspace"
NEWS = "news that something of an owner changed, for whoever shows it"
SHARES = "gives each owner a share of what there is once in the process, and knows nothing else of it"
GONE = "deletes what somebody had who is gone"
ANOTHER = "means another thing by the word"

ALLOWED = {
    "core.agents.hub.checked_members": ANOTHER,
    "core.mcp.session._pass_on": ANOTHER,
    "core.workspace.answering.Answering._index": POOL,
    "core.workspace.demonstrations.Demonstrations.also": POOL,
    "core.workspace.workspaces.Workspaces.forget": GONE,
    "core.workspace.workspaces.Workspaces.index": POOL,
    "core.workspace.workspaces.Workspaces.open": POOL,
    "core.workspace.workspaces.Workspaces._made": POOL,
    "core.export.exporting.conversations_at_rest": FACTORIES,
    "core.ingesting.opening.opened_house": FACTORIES,
    "core.mcp.servers.Servers.of": FACTORIES,
    "core.models.own_models.AllModels.of": FACTORIES,
    "core.rag.grown.making.HeldJob.__init__": SHARES,
    "core.rag.grown.shelf.PgShelves.forget": GONE,
    "core.rag.grown.shelf.PgShelves.of": FACTORIES,
    "core.rag.grown.shelf.PgShelf.__init__": BOUND,
    "core.mcp_endpoint.McpAccess.of": FACTORIES,
    "core.runs.manager.Runs.of": FACTORIES,
    "core.toolbox.code_interpreter.CodeInterpreters.of": FACTORIES,
    "core.toolbox.toolbox.Toolbox.of": FACTORIES,
    "core.toolbox.user_mcp_servers.AllMcpServers.of": FACTORIES,
    "core.workspace.services.Services.of": FACTORIES,
    "core.mcp.servers.OwnerServers.__init__": BOUND,
    "core.mcp_endpoint.OwnerMcpAccess.__init__": BOUND,
    "core.runs.manager.OwnerRuns.__init__": BOUND,
    "core.runs.owner_replies.OwnerReplies.__init__": BOUND,
    "core.runs.elsewhere.OwnersElsewhere.__init__": BOUND,
    "core.toolbox.choices.ToolAccounts.__init__": BOUND,
    "core.toolbox.choices.ToolChoices.__init__": BOUND,
    "core.toolbox.user_mcp_servers.SignIns.__init__": BOUND,
    "core.toolbox.user_mcp_servers.PendingSignIn.__init__": BOUND,
    "core.toolbox.user_openapi.OwnerOpenApi.__init__": BOUND,
    "core.tools.builtin.code_interpreter.CodeInterpreter.__init__": BOUND,
    "core.workspace.services.OwnerServices.__init__": BOUND,
    "core.workspace.answering.Answering.__init__": NEWS,
    "core.workspace.sending.Sending._moved": NEWS,
    "core.workspace.sending.Sending._begin": POOL,
    "core.workspace.sending.Sending._refuse": POOL,
    "core.workspace.sending.Sending._send": POOL,
    "core.workspace.sending.Sending.is_sending": NEWS,
    "webui.app._pass_on": NEWS,
    "webui.histories.Histories.changed": NEWS,
    "webui.histories.Histories.moved": NEWS,
    "webui.handlers.wiring.Handlers._run_changed": NEWS,
    "webui.deletions.Deletions.planned_of": NEWS,
    "webui.views.Views.changed": NEWS,
    "webui.views.Views.deleted": NEWS,
    "webui.views.Views.ended": NEWS,
    "webui.views.Views.is_being_created": NEWS,
    "webui.views.Views.creating": NEWS,
    "webui.views.Views.unread": NEWS,
    "webui.unread.Unread.of": NEWS,
    "webui.unread.Unread.add": NEWS,
    "webui.unread.Unread.read": NEWS,
    "webui.unread.Unread.refresh": NEWS,
    "webui.unread.Unread._change": NEWS,
    "webui.unread.Unread._written": NEWS,
    "webui.handlers.send._Into.expected": NEWS,
    "core.models.pool.ModelPool.drop": SHARES,
    "core.models.pool.ModelPool.get": SHARES,
    "core.models.pool.ModelPool.put": SHARES,
    "core.models.pool.ModelPool.remember_usual": SHARES,
    "core.models.pool.ModelPool.usual": SHARES,
    "core.reading.job.Lanes.lane": SHARES,
    "core.rag.grown.making.VectorJobs.try_again": SHARES,
    "core.reading.intake.Intake._look_into": SHARES,
    "core.reading.intake.Intake.make_vectors": SHARES,
    "core.reading.making.MakingVectors._found": SHARES,
    "core.reading.preparing.Preparing._followed": SHARES,
    "core.reading.preparing.Preparing._hold_up": SHARES,
    "core.reading.preparing.Preparing._over": SHARES,
    "core.reading.preparing.Preparing._prepared": SHARES,
    "core.reading.preparing.Preparing._rest": SHARES,
    "core.reading.preparing.Preparing._wait": SHARES,
    "core.reading.preparing.Preparing.held_up": SHARES,
    "core.reading.preparing.Preparing.of": SHARES,
    "core.reading.preparing.Preparing.resume": SHARES,
    "core.reading.preparing.Preparing.try_again": SHARES,
    "core.reading.preparing.Preparing.watch": SHARES,
    "core.reading.intake.Intake.__init__": NEWS,
    "core.reading.intake.Intake.changed": NEWS,
    "core.toolbox.code_interpreter.CodeInterpreters._forget": SHARES,
    "core.toolbox.code_interpreter.CodeInterpreters._tool": SHARES,
    "core.toolbox.code_interpreter._key": SHARES,
    "core.toolbox.code_interpreter._most_of": SHARES,
    "core.tools.sandbox.kernels.Kernels._kernel": SHARES,
    "core.tools.sandbox.kernels.Kernels._make_room": SHARES,
    "core.tools.sandbox.kernels.Kernels.run": SHARES,
    "core.tools.sandbox.remote.RemoteKernels._question": SHARES,
    "core.tools.sandbox.remote.RemoteKernels.run": SHARES,
    "core.tools.sandbox.runner.CodeRunner.run": SHARES,
    "webui.auth.Owners.cookie": ASKED,
    "webui.auth.Owners.written": ASKED,
    "webui.middleware.gate.Claims.claim": ASKED,
    "webui.middleware.gate.Claims.followed": ASKED,
    "webui.middleware.gate.Claims.holds": ASKED,
    "webui.middleware.gate.GateMiddleware._may": ASKED,
    "webui.middleware.gate.GateMiddleware._noting_event": ASKED,
    "webui.middleware.gate.GateMiddleware._with_body": ASKED,
    "webui.shared_uploads.SharedUploads.fetch": ASKED,
    "webui.shared_uploads.SharedUploads.forget": ASKED,
    "webui.shared_uploads.SharedUploads.give": ASKED,
    "webui.shared_uploads._key": ASKED,
    "webui.uploads.Uploads._begun": ASKED,
    "webui.uploads.Uploads._count": ASKED,
    "webui.uploads.Uploads._watched": ASKED,
    "webui.uploads.Uploads.bring": ASKED,
    "webui.uploads.Uploads.find": ASKED,
    "webui.uploads.Uploads.of": ASKED,
    "webui.uploads.Uploads.owns": ASKED,
    "webui.uploads.Uploads.progress": ASKED,
    "webui.uploads.Uploads.receive": ASKED,
    "webui.uploads.Uploads.size_held": ASKED,
    "webui.uploads._Place.__init__": ASKED,
}


def functions(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.arguments]]:
    """Every function below a node by its whole name; a lambda by the function that it stands in."""
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        name = f"{inside}.{child.name}" if named else inside
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield name, child.args
        yield from functions(child, name)


def told(source: str, module: str) -> set[str]:
    """The functions of a module that take an owner as text."""
    each = functions(ast.parse(source), module)
    return {
        name
        for name, given in each
        if NAMES & {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    }


def test_no_function_above_the_stores_takes_an_owner_but_those_with_a_reason() -> None:
    found: set[str] = set()
    for room in ("core", "webui"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if not path.is_relative_to(ROOT / "core" / "storage"):
                module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                text = path.read_text(encoding="utf-8")
                found |= told(text, module) if any(name in text for name in NAMES) else set()
    assert sorted(found - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - found) == [], "these have no such parameter any more: take them off the list"


def test_no_method_of_an_owners_store_takes_an_owner() -> None:
    found: set[str] = set()
    for path in (ROOT / "core" / "storage").glob("*.py"):
        methods = (name for name in told(path.read_text(encoding="utf-8"), path.stem) if name.count(".") > 1)
        found |= {name for name in methods if not name.endswith(".__init__")}
    assert found == {"files.AllFiles.of", "runs.AllRuns.of", "shares.AllShares.of", "stores.Stores.of"}


def test_an_owner_in_a_method_or_a_lambda_is_found() -> None:
    source = """
class A:
    async def f(self, x, *, owner_id=1): ...
    def g(self):
        return lambda owner: self
    def h(self): ...
"""
    assert told(source, "m") == {"m.A.f", "m.A.g"}
