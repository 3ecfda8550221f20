"""What services cite by themselves, each in a form of its own, as passages: the form of those of a result."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from core.messages.message import Message

Json: TypeAlias = dict[str, Any]

MOST_CITED: Final = 256
"""Places that one reply may cite; what comes after them is left out."""
_LONGEST: Final = 4_000
_LONGEST_NAME: Final = 400
_LONGEST_ADDRESS: Final = 4_000


def of_page(address: object, title: object = "", text: object = "", said: object = "") -> list[Json]:
    """A page of the web that is cited; nothing where its address is none that a browser may follow.

    Args:
        text: What stands there; "" where the service does not tell.
        said: The sentence of the answer that it bears out, where the mark cannot stand behind it.
    """
    url = str(address or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    host = host_of(url)
    if not host or len(url) > _LONGEST_ADDRESS:
        return []
    name = sha256(url.encode("utf-8", "replace")).hexdigest()
    return [_row(str(title or "") or host, f"web:{name}", text, said=said) | {"url": url}]


def of_document(name: object, text: object, page: object = None, said: object = "") -> list[Json]:
    """A document that the service was given, or that it keeps.

    Args:
        page: From 1.
    """
    known = str(name or "") or "document"
    number = page if type(page) is int and page > 0 else None
    return [_row(known, f"given:{sha256(known.encode('utf-8', 'replace')).hexdigest()}", text, number, said)]


def host_of(address: str) -> str:
    """The host of a web address; "" for anything else."""
    try:
        parts = urlsplit(address)
        return (parts.hostname or "") if parts.scheme in {"http", "https"} else ""
    except ValueError:
        return ""


def _row(name: str, document_id: str, text: object, page: int | None = None, said: object = "") -> Json:
    told = {"said": _whole(str(said).strip(), _LONGEST)} if said else {}
    return {
        "text": _whole(str(text or ""), _LONGEST),
        "score": 0.0,
        "document": _whole(name, _LONGEST_NAME),
        "document_id": document_id,
        "page": page,
        "rectangles": [],
        "heading": "",
        "chunk_id": 0,
        **told,
    }


def _whole(text: str, longest: int) -> str:
    """The beginning of a text; half a character, at which a service has cut it, becomes a sign of its own."""
    return text[:longest].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def of_claude(citation: Json) -> list[Json]:
    """One of Anthropic's citations: of a document, a search result or a page of the web."""
    title, text = citation.get("title") or citation.get("document_title"), citation.get("cited_text")
    match citation.get("type"):
        case "web_search_result_location":
            return of_page(citation.get("url"), title, text)
        case "search_result_location":
            source = str(citation.get("source") or "")
            return of_page(source, title, text) or of_document(title or source, text)
        case "page_location":
            return of_document(title or _numbered(citation), text, citation.get("start_page_number"))
        case "char_location" | "content_block_location":
            return of_document(title or _numbered(citation), text)
        case _:
            return []


def _numbered(citation: Json) -> str:
    at = citation.get("document_index")
    return f"document {at + 1}" if type(at) is int else ""


def of_openai(annotation: Json) -> list[Json]:
    """One of OpenAI's annotations, of the chat or of the Responses protocol: a page, or a file that is kept there."""
    kind = str(annotation.get("type") or "")
    inner: Any = annotation.get(kind)
    given = cast("Json", inner) if isinstance(inner, dict) else annotation
    if kind == "url_citation":
        return of_page(given.get("url"), given.get("title"))
    if kind in {"file_citation", "container_file_citation"}:
        return of_document(given.get("filename") or given.get("file_id"), given.get("quote"))
    return []


def end_of(annotation: Json) -> int | None:
    """Where in the text the passage ends that an annotation of OpenAI's is about; `None` where it does not tell."""
    inner: Any = annotation.get(str(annotation.get("type") or ""))
    given = cast("Json", inner) if isinstance(inner, dict) else annotation
    found = given.get("end_index", given.get("index"))
    return found if type(found) is int and found >= 0 else None


def of_gemini(chunk: Json, said: object = "") -> list[Json]:
    """One of Gemini's grounding chunks: a page, a place on a map, or a document of a store."""
    for kind in ("web", "maps", "image"):
        if isinstance(given := chunk.get(kind), dict):
            known = cast("Json", given)
            return of_page(known.get("uri") or known.get("sourceUri"), known.get("title"), "", said)
    if isinstance(given := chunk.get("retrievedContext"), dict):
        known = cast("Json", given)
        inner: Any = known.get("ragChunk")
        part = cast("Json", inner) if isinstance(inner, dict) else {}
        span: Any = part.get("pageSpan")
        page = cast("Json", span).get("firstPage") if isinstance(span, dict) else None
        text = known.get("text") or part.get("text")
        found = of_page(known.get("uri"), known.get("title"), text, said)
        return found or of_document(known.get("title") or known.get("uri"), text, page, said)
    return []


def of_mistral(part: Json, sources: Mapping[str, Json]) -> list[Json]:
    """What a chunk of Mistral's refers to.

    Args:
        sources: What tools gave, by the ids under which the service knows it: see `sources_of`.
    """
    if part.get("type") == "tool_reference":
        return of_page(part.get("url"), part.get("title"), part.get("description"))
    given: Any = part.get("reference_ids")
    ids = cast("list[Any]", given) if isinstance(given, list) else []
    return [sources[str(one)] for one in ids if str(one) in sources]


def sources_of(messages: Sequence[Message]) -> dict[str, Json]:
    """What this turn's tools gave, by ids: passages by their numbers, and what stands in a JSON object by its keys.

    The second is the form that Mistral's models are taught to cite: `{"0": {"url", "title", "snippets"}}`.
    """
    found: dict[str, Json] = {}
    for message in _results(messages):
        passages: Any = (message.extra or {}).get("passages")
        for row in cast("list[Any]", passages) if isinstance(passages, list) else ():
            if isinstance(row, dict) and (number := cast("Json", row).get("number")):
                found[str(number)] = cast("Json", row)
        found |= dict(_keyed(message.get_text_content())) if not passages else {}
    return found


def _results(messages: Sequence[Message]) -> Iterable[Message]:
    """The results behind the last question."""
    last = max((at for at, one in enumerate(messages) if one.role == "user"), default=-1)
    return (one for one in messages[last + 1 :] if one.role == "function")


def _keyed(text: str) -> Iterator[tuple[str, Json]]:
    from core.messages.json_text import read_object

    if not text.lstrip().startswith("{"):
        return
    try:
        given = read_object(text)
    except (ValueError, RecursionError):  # no object
        return
    for key, one in list(given.items())[:MOST_CITED]:
        if isinstance(one, dict):
            about = cast("Json", one)
            text = " ".join(_texts(about.get("snippets") or about.get("text") or about.get("content")))
            title = about.get("title") or about.get("name")
            for row in of_page(about.get("url"), title, text) or (of_document(title, text) if title or text else []):
                yield key, row


def _texts(given: object) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    elif isinstance(given, list):
        for one in cast("list[object]", given):
            yield from _texts(one)
