"""What is taken out of texts and values on their way out, and what stays."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import Any

import pytest

from core.export.redaction import Redaction, is_called_secret

PICTURE = base64.b64encode(b"\x89PNG" + b"x" * 400).decode()
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIabcdef\n-----END RSA PRIVATE KEY-----"


LIKE_KEYS = ["sk-Cvt80tRJib32_GZNlIg", "rknkSGe3ewKnfNPl3i7xJw", "A-pk_NlMMEIoYf5dzDUMW6"]


@pytest.mark.parametrize("own", LIKE_KEYS)
def test_an_id_of_ours_that_looks_like_a_key_stays_so_that_what_it_names_is_found(own: str) -> None:
    redaction = Redaction(["another secret"])
    assert redaction.address(f"/files/{own}") == f"/files/{own}"
    assert redaction.said(f"See ![plot](/files/{own}).") == f"See ![plot](/files/{own})."
    assert own not in redaction.said(f"See https://example.org/{own} and /files/{own}x.")
    told = {"files": [{"id": own, "name": "notes.txt"}], "passages": [{"document_id": own, "text": f"It is {own}."}]}
    hidden = {"document_id": own, "text": redaction.said(f"It is {own}.")}
    assert own not in hidden["text"], "what somebody wrote may be a key"
    assert redaction.value(told) == {**told, "passages": [hidden]}


@pytest.mark.parametrize("own", LIKE_KEYS)
def test_a_known_secret_goes_where_an_id_stands_too(own: str) -> None:
    redaction = Redaction([own])
    assert own not in redaction.address(f"/files/{own}")
    assert own not in str(redaction.value({"id": own, "document_id": own}))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("at https://:s3cret99@h.io/x", "at https://…@h.io/x"),
        ("at https://tok3n99@h.io/x", "at https://…@h.io/x"),
        ("see https://x.io/a?token=abcdefghij&user=bob now", "see https://x.io/a?token=… now"),
        ("https://x.io/?access_token=s3cr3tv@lue ok", "https://x.io/?access_token=… ok"),
        ("password: Tr0ub4dor&3!", "password: …"),
        ("**API key:** `abcd1234`", "**API key:** `…`"),
        ("Authorization: Token abc123def", "Authorization: …"),
        ("Authorization: Bearer abcdef", "Authorization: …"),
        ("Cookie: a=b12345; sid=secretsid9", "Cookie: …"),
        (f"This is it:\n{PEM}\nUse it.", "This is it:\n…\nUse it."),
        ('{"text": "{\\"password\\": \\"swordfish1\\"}"}', '{"text": "{\\"password\\": \\"…"}"}'),
    ],
)
def test_a_key_that_nobody_knew_is_taken_out_of_prose_and_of_results(text: str, left: str) -> None:
    assert Redaction().said(text) == left
    assert Redaction().machine(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "The secret is patience; a token: one piece of text.",
        "Mail bob@example.org, or see https://example.org/@bob and https://example.org/?q=a@b.",
        "Cookie: a biscuit. Token: see https://docs.python.org/3/library/token.html",
        "A session cookie: `SameSite`. Basic training.",
    ],
)
def test_prose_about_keys_stays(text: str) -> None:
    assert Redaction().said(text) == text


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"clientSecret": "plain", "userPassword": "plain", "maxTokens": 5}, {"maxTokens": 5}),
        ({"password": 12345678, "api_keys": ["plain", "words"]}, {"api_keys": ["…", "…"]}),
        ({"cookies": {"sid": "plain"}, "cookie": [{"name": "sid", "value": "plain"}]}, {"cookies": {"sid": "…"}}),
        (
            {"headers": [{"name": "Authorization", "value": "plain"}]},
            {"headers": [{"name": "Authorization", "value": "…"}]},
        ),
        ({"token": {"type": "string"}}, {"token": {"type": "string"}}),
    ],
)
def test_what_is_called_a_key_goes_however_it_is_kept(given: dict[str, Any], left: dict[str, Any]) -> None:
    kept = Redaction().value(given)
    assert {name: kept[name] for name in left} == left
    assert "plain" not in json.dumps(kept)
    assert "12345678" not in json.dumps(kept)


def test_a_name_is_a_secrets_in_every_spelling() -> None:
    for name in ("clientSecret", "client_secret", "X-Api-Key", "apiKey", "APIKey", "accessToken", "set-cookie"):
        assert is_called_secret(name), name
    for name in ("max_tokens", "maxTokens", "key", "author", "tokenizer"):
        assert not is_called_secret(name), name


def test_the_bytes_of_a_picture_in_a_text_stay_behind() -> None:
    redaction = Redaction()
    digest = sha256(base64.b64decode(PICTURE)).hexdigest()
    assert redaction.said(f"![It](data:image/png;base64,{PICTURE})") == f"![It](sha256:{digest})"
    assert redaction.files[f"sha256:{digest}"][:2] == ("image/png", 404)


@pytest.mark.parametrize(
    ("address", "left"),
    [
        ("/home/ann/private/plan.pdf", "plan.pdf"),
        ("file:///home/ann/plan.pdf", "plan.pdf"),
        (r"C:\Users\ann\plan.pdf", "plan.pdf"),
        ("~/plan.pdf", "plan.pdf"),
        ("/files/abc", "/files/abc"),
        ("https://example.org/plan.pdf", "https://example.org/plan.pdf"),
    ],
)
def test_where_a_file_lies_on_the_machine_is_not_told(address: str, left: str) -> None:
    assert Redaction().address(address) == left


@pytest.mark.parametrize("text", ["[" * 100_000, "no JSON", '{"a": 1', "1" * 5000])
def test_arguments_that_cannot_be_read_are_a_text_of_json(text: str) -> None:
    assert json.loads(Redaction().arguments(text)) == text
