"""Which files a question names, so that it is answered from those alone.

A name counts with its ending wherever it stands. Without it ("report" for report.pdf) it may be any word of the
question, so it counts only where one file is called so and the words around it ask what stands in a file: "what does
report say", "according to report", "in the file report". "The report" may be any of them, "Jane Doe" a person, and
"data" needs no article. What is not surely about these files alone is asked of all, for a file that is left out is
missed more than one that is read in vain.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from core.rag.beyond_named import LEADS, LINK, NAME, THE, is_about_others

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

_SEEN: Final = 400
"""Letters at either end of a question that are looked at: what is pasted between them says nothing of what is asked."""
_FEWEST: Final = 2  # letters of a name without its ending
_FEWEST_HAN: Final = 4  # of one in Chinese characters: shorter ones are words
_ENDING = re.compile(r"\.[a-z][a-z0-9]{0,5}\Z")
_BETWEEN = re.compile(rf"[\"”'’]?\s*(?:,\s*{LINK}?|{LINK}){LEADS}[\"“'‘]?")

_SAYS = (
    r"(?:says?|states?|mentions?|tells?|describes?|claims?|recommends?|defines?|specif(?:y|ies)|reports?|concludes?"
    r"|argues?|writes?|lists?|explains?)"
)
_READ = r"(?:summari[sz]e|proofread|translate|outline|review|skim|open|read|look (?:at|in|into))"
_ENDS = r"\s*(?:[?.!,;:，。；：？！]|\Z)"
_IN_IT = r"\s*(?:里|中|上|的内容|怎么说|说|写|讲|提到|提及)"
_AS_FILE: Final[Sequence[tuple[str, str]]] = (  # what stands before, and after, a name without its ending
    (r"\b(?:files?|documents?|attachments?|datei|dokument|fichier|archivo)\s+(?:(?:named|called)\s+)?", r""),
    (r"(?:文件|文档|附件)\s*", r""),
    (r"(?<!\ba )(?<!\ban )(?<!\bno )(?<!\bany )", r"\s+(?:file|pdf|spreadsheet|workbook|deck|datei)\b"),
)
_AS_WORD: Final[Sequence[tuple[str, str]]] = (  # around a word that would need an article if it were no name
    (r"\bdoes\s+", rf"\s+{_SAYS}\b"),
    (r"\b(?:according to|as per|laut|gemäss|selon|d['’]après|según)\s+", r""),
    (r"(?:根据|按照|依据)\s*", r""),
    (r"\bwhat(?:['’]s| is| stands) in\s+", _ENDS),
    (r"\bwas (?:ist|steht) in\s+", _ENDS),
    (
        rf"(?:^|[.!?;:,]\s*|\b(?:please|to|and|you|then)\s+){_READ}\s+",
        rf"(?:{_ENDS}|\s+(?:and|for)\b)",
    ),
)
_IN = r"\b(?:in|from|inside|within|aus|dans)\s+"
_AS_NUMBERED: Final[Sequence[tuple[str, str]]] = (  # beside these, around one with a figure in it
    (rf"\bdoes\s+(?:{THE}\s+)?", rf"\s+{_SAYS}\b"),
    (rf"\b(?:according to|as per|laut|gemäss|selon|según)\s+{THE}\s+", r""),
    (r"\A\W*", r"\s*[:：]"),
)
_AS_PAPER: Final[Sequence[tuple[str, str]]] = (  # and where it says what kind of paper it is: "in the lease 2024"
    (
        rf"{_IN}(?:{THE}\s+)?",
        rf"(?:{_ENDS}|\s+(?:about|on|for|regarding|{_SAYS}|is|are|what|which|who|where|when|how)\b)",
    ),
)
_AS_QUOTED: Final[Sequence[tuple[str, str]]] = ((_IN, r""),)
_PAPER = re.compile(
    r"invoice|bill|receipt|report|lease|contract|agreement|policy|letter|memo|minutes|budget|statement|offer|quot"
    r"|survey|study|paper|manual|guide|handbook|spec|protocol|summary|presentation|slides|list|form|certificate|notes"
    r"|rechnung|vertrag|bericht|angebot|protokoll|gutachten|rapport|contrat|facture|informe|factura"
)
# Words that need no article, and others that say nothing of a file.
_ONLY_WORDS = re.compile(
    r"a|an|the|this|that|these|those|and|or|but|not|no|yes|it|its|he|she|they|them|us|we|you|me|him|her|one|ones"
    r"|both|who|whom|whose|what|which|where|when|why|how|all|any|some|more|most|none|nothing|everything|something"
    r"|help|other|others|data|information|research|law|policy|contract|plan|schedule|design|history|science"
    r"|evidence|feedback|literature|management|insurance|experience|knowledge|text|code|content|contents|context"
    r"|advice|news|work|money|tax|health|safety|security|quality|time|water|food|music|software|hardware"
    r"|documentation|correspondence|mail|question|questions|answer|answers"
)
_NO_TITLE = re.compile(  # a time or a part of a document, which many files have
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|januar|februar|märz|mai"
    r"|juni|juli|oktober|dezember|q[1-4]|quarter|year|week|day|chapter|section|page|part|figure|table|slide|sheet|step"
    r"|article|clause|appendix|version|level|class|type|phase|plan|model|room|number|no)?[\s_.-]*(?:\d+|[ivx]+|[a-z])",
)
_QUOTED: Final = {
    '"': '"',
    "“": "”",
    "„": "“",
    "'": "'",
    "‘": "’",
    "`": "`",
    "«": "»",
    "「": "」",
    "『": "』",
    "《": "》",
}
_FIRST = re.compile(r"[^\s_.-]+")
_HAN = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a question names files.

    Args:
        key: The name, as it is compared.
    """

    start: int
    end: int
    key: str


def files_named(question: str, names: Collection[str]) -> frozenset[str]:
    """The files that a question names and is about alone; none where it may be about any.

    Args:
        names: What the files are called, with their endings.
    """
    whole = question if len(question) <= 2 * _SEEN else f"{question[:_SEEN]} {question[-_SEEN:]}"
    written = _plain(whole)
    text = written.casefold()
    called: dict[str, set[str]] = {}
    for name in names:
        plain = _plain(name).casefold()
        # Of thousands, nearly none: however a name stands in a question, its first word does.
        if (first := _FIRST.search(plain)) and first[0] in text:
            called.setdefault(plain, set()).add(name)
    places = _places(text, written, called)
    if not places or is_about_others(_with_names(text, places)):
        return frozenset()
    return frozenset(name for place in places for name in called[place.key])


def _with_names(text: str, places: Sequence[_Place]) -> str:
    """The question with the sign for a name in place of each."""
    said, at = "", 0
    for one in places:
        said, at = f"{said}{text[at : one.start]}{NAME}", one.end
    return said + text[at:]


def _places(text: str, written: str, called: Collection[str]) -> list[_Place]:
    """Where names stand, in their order; of two that overlap the longer one."""
    stems = {name: PurePath(name).stem if _ENDING.search(name) else name for name in called}
    found = [
        _Place(*span, name)
        for name, stem in stems.items()
        if (stem != name or "/" in name) and name in text
        for span in _standing(text, name)
    ]
    often = Counter(stems.values())
    beside: list[_Place] = []
    for name, stem in stems.items():
        if often[stem] > 1 or "/" in stem or len(stem) < _FEWEST:
            continue
        for form in _forms(stem):
            for span in _standing(text, form):
                place = _Place(*span, name)
                if _is_asked_of(form, text, span, written):
                    found.append(place)
                elif _may_be_name(form, written):
                    beside.append(place)
    kept = _apart(found)
    for one in beside:  # "report and notes": what stands beside a name is one, too
        if any(_BETWEEN.fullmatch(text[min(one.end, it.end) : max(one.start, it.start)]) for it in kept):
            kept = _apart([*kept, one])
    return sorted(kept, key=lambda place: place.start)


def _apart(found: Iterable[_Place]) -> list[_Place]:
    kept: list[_Place] = []
    for one in sorted(found, key=lambda place: place.start - place.end):
        if all(one.end <= other.start or other.end <= one.start for other in kept):
            kept.append(one)
    return kept


def _forms(stem: str) -> Iterable[str]:
    """A name without its ending, as it is, and with spaces between its words."""
    return filter(None, dict.fromkeys((stem, " ".join(re.split(r"[\s_.-]+", stem)).strip())))


def _is_asked_of(form: str, text: str, span: tuple[int, int], written: str) -> bool:
    """Whether the words around a name without its ending ask what is in that file."""
    before, after = text[: span[0]], text[span[1] :]
    if before and after[:1] == _QUOTED.get(before[-1], "no"):
        if before[-1] == "《":
            return True
        return _fits(before[:-1], after[1:], (*_AS_FILE, *_AS_WORD, *_AS_QUOTED)) or _says_in_it(form, "", after[1:])
    if _fits(before, after, _AS_FILE):
        return True
    if _NO_TITLE.fullmatch(form):
        return False
    if "_" in form or any(sign.isdigit() for sign in form):
        if _fits(before, after, (*_AS_NUMBERED, *(_AS_PAPER if _PAPER.search(form) else ()))):
            return True
    elif not _may_be_name(form, written):
        return False
    return _fits(before, after, _AS_WORD) or _says_in_it(form, before, after)


def _may_be_name(form: str, written: str) -> bool:
    """Whether a word can be the name of a file: written small, as no person's or town's, and one that has an article.

    Args:
        form: The word, case folded.
        written: The question in its own letters.
    """
    if _ONLY_WORDS.fullmatch(form) or form not in written:
        return False
    return not _HAN.search(form) or len(form) >= _FEWEST_HAN


def _says_in_it(form: str, before: str, after: str) -> bool:
    """Whether Chinese words ask what is said in it; Latin letters among them are a name, Chinese ones may be a word."""
    if not re.match(_IN_IT, after):
        return False
    return not _HAN.search(form) or (len(form) >= _FEWEST_HAN and not _HAN.match(before[-1:]))


def _fits(before: str, after: str, around: Iterable[tuple[str, str]]) -> bool:
    return any(re.search(rf"(?:{first})\Z", before) and re.match(then, after) for first, then in around)


def _standing(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Where a name stands by itself, and not within a longer one."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if (
            not _is_in_address(text[:at])
            and not _goes_on(text[at - 1 : at], name[0])
            and not _goes_on(text[end : end + 1], name[-1])
        ):
            goes_on = re.match(r"\.[^\W_]", text[end : end + 2])  # another ending
            if not goes_on or _HAN.match(text[end + 1 : end + 2]):
                yield at, end
        at = text.find(name, at + 1)


def _is_in_address(before: str) -> bool:
    """Whether a name is the end of an address on the web or of a mailbox."""
    return re.search(r"(?:://\S*|\w@)\Z", before) is not None


def _goes_on(sign: str, edge: str) -> bool:
    """Whether a sign beside a name belongs to a longer one; Chinese is written without spaces around names."""
    if not sign or _HAN.match(sign) or _HAN.match(edge):
        return False
    return sign.isalnum() or sign in "_-"


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split())
