"""Short ways into an owner's workspace, for tests whose engine lives longer than any of them."""

from __future__ import annotations

from typing import Any

from core.engine import Engine
from core.models.own_models import OwnerModels
from core.models.pool import ActiveModel
from core.reading.libraries import Libraries
from core.runs.run import Run
from core.storage.base import DocumentRecord
from core.toolbox.toolbox import OwnerTools
from core.workspace.conversation import Conversation
from core.workspace.retrying import Retried
from core.workspace.workspace import Workspace


def world_of(engine: Engine, owner: str) -> Workspace:
    """The workspace of an owner, beside the pool: it opens no index of its own."""
    nothing: Any = None
    return Workspace(engine.services.of(owner), open_index=nothing, close_index=nothing)


def libraries_of(engine: Engine, owner: str) -> Libraries:
    """The named libraries of an owner."""
    return world_of(engine, owner).libraries


async def asked_here(engine: Engine, owner: str, conversation_id: str, text: str) -> Run:
    """The reply to a question, which this process writes."""
    run = await talk_of(engine, owner, conversation_id).ask(text)
    assert isinstance(run, Run)
    return run


def talk_of(engine: Engine, owner: str, conversation_id: str) -> Conversation:
    """A conversation of an owner."""
    return world_of(engine, owner).conversation(conversation_id)


async def model_of(engine: Engine, owner: str) -> ActiveModel:
    """The model that answers an owner."""
    async with engine.workspaces.open(owner) as workspace:
        return await workspace.models.chosen()


async def read_again(engine: Engine, owner: str, document_id: str) -> DocumentRecord:
    """Read an owner's document once more."""
    async with engine.workspaces.open(owner) as workspace:
        return await workspace.read_again(document_id)


async def unlock(engine: Engine, owner: str, document_id: str, password: str) -> tuple[DocumentRecord, Retried]:
    """Read an owner's document with its password."""
    async with engine.workspaces.open(owner) as workspace:
        return await workspace.unlock(document_id, password)


def models_of(engine: Engine, owner: str) -> OwnerModels:
    """The models of an owner."""
    return world_of(engine, owner).models


def tools_of(engine: Engine, owner: str) -> OwnerTools:
    """The tools of an owner."""
    return world_of(engine, owner).tools
