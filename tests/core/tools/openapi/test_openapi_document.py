"""From an OpenAPI document to tools: names, parameters, risks, references, and what is no document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from core.agents.tools import tools_from
from core.errors import SettingsError
from core.tools.approval import Policy
from core.tools.openapi.as_tools import ApiTool, tools_of
from core.tools.openapi.document import Document, parsed
from core.tools.openapi.operations import operations
from core.tools.taint import Taint

YAML = """
openapi: 3.0.3
info: {title: Pet shop, version: "1"}
servers:
  - url: https://{region}.pets.example/v1
    variables: {region: {default: eu}}
paths:
  /pets/{petId}:
    parameters:
      - {name: petId, in: path, required: true, schema: {type: integer}, description: Which pet.}
    get:
      operationId: showPet
      summary: Show a pet
      parameters:
        - {name: fields, in: query, schema: {type: array, items: {type: string}}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: Authorization, in: header, schema: {type: string}}
        - {name: api_key, in: query, schema: {type: string}}
    delete: {summary: Give a pet away}
  /pets:
    post:
      operationId: create pet!
      requestBody:
        required: true
        content:
          application/json:
            schema: {$ref: "#/components/schemas/Pet"}
components:
  securitySchemes:
    key: {type: apiKey, in: query, name: api_key}
  schemas:
    Pet:
      type: object
      required: [name, id]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, maxLength: 20}
        born: {type: string, format: date, example: 2020-01-01}
        weight: {type: number, nullable: true, minimum: 0, exclusiveMinimum: true}
        parents: {type: array, items: {$ref: "#/components/schemas/Pet"}}
"""


def document(**root: Any) -> Document:
    return Document({"openapi": "3.1.0", "info": {"title": "T"}, "paths": {}, **root})


def tools() -> dict[str, ApiTool]:
    return {tool.name: tool for tool in tools_of(Document(parsed(YAML)))}


def test_each_operation_is_a_tool_with_a_name_that_services_accept():
    found = tools()
    assert list(found) == ["showPet", "delete_pets_petId", "create_pet"]
    assert [tool.full_name for tool in found.values()] == [f"api:Pet_shop:{name}" for name in found]
    named = tools_of(Document(parsed(YAML)), name="shop")
    assert [tool.name for tool in named] == ["shop-showPet", "shop-delete_pets_petId", "shop-create_pet"]
    assert named[0].full_name == "api:shop:showPet"


def test_each_operation_has_its_own_risk():
    found = tools()
    verdicts = {name: Policy().verdict(tool, {}, Taint()) for name, tool in found.items()}
    assert verdicts == {"showPet": "run", "delete_pets_petId": "destructive", "create_pet": "writes"}
    assert all(tool.reaches_out for tool in found.values())
    assert {name: tool.idempotent for name, tool in found.items()} == {
        "showPet": True, "delete_pets_petId": True, "create_pet": False,
    }  # fmt: skip
    assert Policy(deny=("api:*:delete_*",)).verdict(found["delete_pets_petId"], {}, Taint()) == "refuse"
    assert found["create_pet"].wants({}, "en") == "send to Pet shop: create pet!"
    assert found["delete_pets_petId"].wants({}, "zh") == "在 Pet shop 删除：Give a pet away"


def test_parameters_come_from_path_and_operation_and_keys_are_not_a_model_s_to_fill_in():
    schema = tools()["showPet"].function["parameters"]
    assert set(schema["properties"]) == {"petId", "fields", "X-Trace"}
    assert schema["required"] == ["petId"]
    assert schema["properties"]["petId"] == {"type": "integer", "description": "Which pet."}


def test_a_body_is_told_as_json_schema_and_a_schema_inside_itself_ends():
    schema = tools()["create_pet"].function["parameters"]
    Draft202012Validator.check_schema(schema)
    body = schema["properties"]["body"]
    assert schema["required"] == ["body"]
    assert body["required"] == ["name"]  # what the service fills in is not asked for
    assert "id" not in body["properties"]
    assert body["properties"]["weight"] == {"type": ["number", "null"], "exclusiveMinimum": 0}
    assert body["properties"]["parents"] == {"type": "array", "items": {}}
    json.dumps(schema)


def test_the_server_s_variables_take_their_defaults_and_a_relative_one_follows_the_document():
    assert next(operations(Document(parsed(YAML)))).server == "https://eu.pets.example/v1"
    get = {"get": {"operationId": "a"}}
    near = Document(
        {"openapi": "3.0.0", "servers": [{"url": "../v2"}], "paths": {"/a": get}}, "https://x.example/docs/o"
    )
    assert next(operations(near)).server == "https://x.example/v2"
    assert next(operations(document(paths={"/a": get}))).server is None
    assert next(operations(document(paths={"/a": get}), server="https://mine.example")).server == "https://mine.example"


def test_names_that_are_taken_get_an_ending_and_none_is_too_long():
    paths = {f"/{'long' * 30}/{number}": {"get": {}} for number in range(30)} | {"/a": {"get": {"operationId": "!"}}}
    names = [operation.name for operation in operations(document(paths=paths))]
    assert len(set(names)) == 31
    assert all(0 < len(name) <= 64 for name in names)
    twice = [{"name": "id", "in": "path"}, {"name": "id", "in": "query"}]
    (one,) = operations(document(paths={"/{id}": {"get": {"parameters": twice}}}))
    assert [parameter.key for parameter in one.parameters] == ["id", "id_query"]


@pytest.mark.parametrize(
    ("ref", "what"),
    [
        ("#/a", "circle"),
        ("https://evil.example/x.json", "elsewhere"),
        ("../x.json", "file"),
        ("#/nothing/0/x", "nothing"),
    ],
)
def test_a_reference_that_leads_nowhere_is_anything_at_all(ref: str, what: str):
    root = document(a={"$ref": "#/b"}, b={"$ref": "#/a"}, nothing=[])
    assert root.resolved({"$ref": ref}) == {}


def test_references_that_grow_without_end_stay_small():
    schemas = {
        f"s{n}": {"type": "object", "properties": {k: {"$ref": f"#/components/schemas/s{n + 1}"} for k in "abcdefghij"}}
        for n in range(40)
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/s0"}}}}
    root = document(paths={"/a": {"post": {"requestBody": body}}}, components={"schemas": schemas})
    (tool,) = tools_of(root)
    assert len(json.dumps(tool.function)) < 400_000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "no OpenAPI document"),
        ("just words", "no OpenAPI document"),
        ("[1, 2]", "no OpenAPI document"),
        ('{"swagger": "2.0", "paths": {}}', "Swagger 2"),
        ('{"openapi": "3.0.0"}', "no `paths`"),
        ("openapi: 3.0.0\npaths: [", "no OpenAPI document"),
        ("!!python/object/apply:os.system ['true']", "no OpenAPI document"),
        ("[" * 100_000, "nested too deep"),
        ("\n".join(f"{' ' * n}a:" for n in range(400)), "nested too deep"),
        ("a: &a {}\n" + "".join(f"k{n}: &a {{<<: [*a, *a, *a]}}\n" for n in range(40)), "merges too many"),
        ('{"a":' * 100_000, "no OpenAPI document"),
        (
            "a0: &a0 [lol]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)),
            "repeats its parts too often",
        ),
        ("".join(f"k{n}: &a [*a]\n" for n in range(200)), "repeats its parts too often"),
    ],
)
def test_what_is_no_document_is_told_in_one_sentence(text: str, says: str):
    with pytest.raises(SettingsError, match=says) as caught:
        parsed(text)
    assert "\n" not in str(caught.value)


def test_an_operation_with_more_parameters_than_anybody_fills_in_is_refused():
    parameters = [{"name": f"q{n}", "in": "query", "schema": {"$ref": "#/components/schemas/A"}} for n in range(300)]
    with pytest.raises(SettingsError, match="more than 200 parameters"):
        list(operations(Document({"paths": {"/a": {"get": {"parameters": parameters}}}})))


def test_values_that_a_schema_names_have_an_end():
    inner: list[Any] = ["a"]
    inner.append(inner)
    schema = {"type": "string", "default": "a" * 1_000_000, "enum": ["b" * 1_000_000, inner]}
    [one] = operations(
        Document({"paths": {"/a": {"get": {"parameters": [{"name": "q", "in": "query", "schema": schema}]}}}})
    )
    assert len(json.dumps(one.schema)) < 6_000


def test_an_anchor_inside_itself_is_no_trap():
    schema = "{type: object, properties: {x: *s}}"
    body = f"requestBody: {{content: {{application/json: {{schema: &s {schema}}}}}}}"
    text = f"openapi: 3.0.0\npaths:\n  /a:\n    post:\n      {body}\n"
    (tool,) = tools_of(Document(parsed(text)))
    assert tool.schema["properties"]["body"]["properties"] == {"x": {}}


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries(
        {"info": _ANY, "servers": _ANY, "components": _ANY, "security": _ANY},
    ),
    st.dictionaries(
        st.sampled_from(["operationId", "summary", "parameters", "requestBody", "servers", "security"]), _ANY
    ),
    st.lists(
        st.dictionaries(st.sampled_from(["name", "in", "schema", "required", "content", "style"]), _ANY), max_size=3
    ),
)
def test_whatever_stands_in_a_document_makes_tools_or_one_sentence(root: Any, about: Any, parameters: Any):
    item = {"get": about, "post": {**about, "parameters": parameters}, "parameters": parameters}
    for tool in tools_of(document(**{**root, "paths": {"/a/{b}": item}})):
        assert tool.function["name"]
        Draft202012Validator.check_schema({"type": "object"})
        assert tool.label("en")


def test_a_program_lists_a_document_among_its_tools(tmp_path: Path):
    path = tmp_path / "shop.yaml"
    path.write_text(YAML, "utf-8")
    for source in (str(path), path, YAML, parsed(YAML)):
        assert list(tools_from([{"openapi": source, "only": ["show*"]}, "calculator"])) == ["showPet", "calculator"]
    for wrong in (
        {"openapi": YAML, "kredentials": {}},
        {"openapi": YAML, "only": ["nothing"]},
        {"openapi": "none.yaml"},
    ):
        with pytest.raises(SettingsError):
            tools_from([wrong])


def test_what_is_near_the_top_is_told_before_what_is_far_below():
    deep = {"type": "object", "properties": {f"p{n}": {"$ref": "#/components/schemas/Deep"} for n in range(9)}}
    top = {
        "type": "object",
        "properties": {**{f"a{n}": {"$ref": "#/components/schemas/Deep"} for n in range(9)}, "z": {"type": "string"}},
    }
    middle = {"Deep": {**deep, "properties": {**deep["properties"], "leaf": {"type": "integer"}}}}
    body = {"content": {"application/json": {"schema": top}}}
    root = document(paths={"/a": {"post": {"requestBody": body}}}, components={"schemas": middle})
    (tool,) = tools_of(root)
    properties = tool.schema["properties"]["body"]["properties"]
    assert list(properties) == [*(f"a{n}" for n in range(9)), "z"]
    assert properties["z"] == {"type": "string"}
    assert properties["a8"]["properties"]["leaf"] == {"type": "integer"}


def test_a_document_without_servers_is_served_from_where_it_came_and_a_pasted_one_from_nowhere():
    root = {"openapi": "3.0.0", "paths": {"/pets": {"get": {}}}}
    (tool,) = tools_of(Document(root, "https://pets.example/docs/openapi.json"), credentials={"bearer": "sk-key"})
    assert tool.operation.server == "https://pets.example/"
    assert tool.credentials == {"bearer": "sk-key"}
    assert tools_of(Document({**root, "servers": []}))[0].operation.server is None


def test_a_schema_that_many_operations_share_is_made_once() -> None:
    shared = {
        "type": "object",
        "properties": {"next": {"$ref": "#/components/schemas/Kind"}, "size": {"type": "integer"}},
    }
    takes = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Kind"}}}}
    root = {
        "openapi": "3.0.0",
        "paths": {f"/{number}": {"put": {"requestBody": takes}} for number in range(3)},
        "components": {"schemas": {"Kind": shared}},
    }
    first, *others = (tool.operation.schema["properties"]["body"] for tool in tools_of(Document(root)))
    assert first["properties"] == {"next": {}, "size": {"type": "integer"}}
    assert all(one is first for one in others)
