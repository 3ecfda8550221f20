"""Which files a question names, so that it is answered from those alone.

A name counts with its ending wherever it stands. Without it ("report" for report.pdf) it may be any word of the
question, so it counts only where one file is called so and the words around it ask what stands in a file: "what does
report say", "according to report", "in the file report". "The report" may be any of them. What is not surely about
these files alone is asked of all, for a file that is left out is missed more than one that is read in vain.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

_SEEN: Final = 400
"""Letters at either end of a question that are looked at: what is pasted between them says nothing of what is asked."""
_FEWEST: Final = 2  # letters of a name without its ending
_FEWEST_HAN: Final = 4  # of one in Chinese characters: shorter ones are words
_NAME: Final = "\ue000"  # stands for a name where the words around it are looked at
_FILES: Final = (
    r"(?:files?|documents?|docs?|pdfs?|attachments?|papers?|sources?|reports?|contracts?|letters?|sheets?|slides?|books?"
    r"|ones?|dateien?|dokumente?n?|fichiers?|documentos?|archivos?)"
)

_OTHERS = re.compile(
    rf"\bothers\b|\bother (?:\w+ )?{_FILES}\b|\bother (?:two|three|four|five)\b|\beverything else\b|\ball else\b"
    rf"|\bthe rest\b(?! of\b)|\bthe rest of (?:them\b|(?:the |my |these |those )?{_FILES}\b)"
    rf"|\b(?:all|each|every|any|both)(?: of)?(?: the| my| these| those)?(?: \w+)? {_FILES}\b"
    rf"|\bwhich (?:of (?:the|my|these|those) )?{_FILES}\b|\b(?:the|my|these|those) (?:files|documents|attachments)\b"
    r"|\banderen?\b|\bübrigen\b|\brestlichen\b|\balle[nr]? (?:\w+ )?(?:dateien|dokumente)"
    r"|\bwelche[rs]? (?:datei|dokument)"
    r"|\b(?:les|des|aux) autres\b|\bautres (?:fichiers|documents)|\btous les\b|\bquels? (?:fichier|document)"
    r"|\b(?:los|las) (?:otr|demás)|\botros (?:archivos|documentos)|\btodos los\b|\bqué (?:archivo|documento)"
    r"|其他|其它|其余|别的|另外|另一|(?:所有|全部|每个|每份|这些|哪个|哪些|哪份|几个|几份)(?:的)?(?:文件|文档|附件|资料)",
    re.IGNORECASE,
)
_BUT = re.compile(
    r"(?:\b(?:except|besides?|other than|apart from|without|excluding|but not|not|outside(?: of)?|ohne|außer|sauf|hors"
    rf"|excepto|salvo)\b|除了?|不看|不含|不在)\s*(?:in |from |for |the |file |of ){{0,3}}[\"“'‘]?{_NAME}",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"\bcompar|\bcontrast|\bversus\b|\bvs\b|\bdiffer|\bdeviat|\bmatch|\bagree|\bconsistent|\bsame as\b|\bthan\b|\bvergl"
    r"|\bunterschied|\babweich|\bweicht\b|\bdiff[ée]ren|比|区别|不同|差异|差别|一致|相同|异同",
    re.IGNORECASE,
)
_LINK: Final = (
    r"(?:\b(?:with|to|and|or|against|versus|vs\.?|from|than|mit|und|oder|zu|von|avec|et|ou|à|con|y)\b"
    r"|[和与跟同比及或、&])"
)
_LEADS: Final = r"\s*+(?:(?:in|file|the|of|that)\s++)*+"
_BESIDE = re.compile(  # what stands right beside a name is compared with it, if it is no name itself
    rf"(?P<linked>{_LINK}{_LEADS}[\"“'‘]?{_NAME})"
    rf"|{_NAME}[\"”'’]?\s*+(?:(?:differs?|deviates?|compares?|match(?:es)?|agrees?)\s++)?+{_LINK}{_LEADS}(?!{_NAME})"
    rf"|\b(?:same as|consistent with|in line with)\b{_LEADS}(?!{_NAME})",
    re.IGNORECASE,
)
_BETWEEN = re.compile(rf"[\"”'’]?\s*(?:,\s*)?{_LINK}?{_LEADS}[\"“'‘]?", re.IGNORECASE)
_THE = r"(?:the|my|our|this|that|these|those|der|die|das|dem|den|meine[mnrs]?|les?|la|el|los|las)"
_AND = r"(?:and|or|as well as|und|oder|et|ou|y)"
_TOGETHER = re.compile(
    rf"{_NAME},? (?:{_AND}|&) {_THE} |\b{_THE} (?:\w+ ){{1,2}}(?:{_AND}|&) {_NAME}"
    rf"|{_NAME}\s*(?:和|与|跟|以及|及|还有|、)\s*(?!{_NAME})|(?<=[^{_NAME}\s])(?:和|与|跟|以及|及|、)\s*{_NAME}",
    re.IGNORECASE,
)

_SAYS = (
    r"(?:says?|states?|mentions?|tells?|describes?|claims?|recommends?|defines?|specif(?:y|ies)|reports?|concludes?"
    r"|argues?|writes?|lists?|explains?)"
)
_READ = r"(?:summari[sz]e|proofread|translate|outline|review|skim|open|read|look (?:at|in|into))"
_ENDS = r"\s*(?:[?.!,;:，。；：？！]|\Z)"
_IN_IT = r"\s*(?:里|中|上|的内容|怎么说|说|写|讲|提到|提及)"
_AROUND: Final[Sequence[tuple[str, str]]] = (  # what stands before, and after, a name without its ending
    (r"\b(?:does|do|did)\s+", rf"\s+{_SAYS}\b"),
    (r"\b(?:according to|as per|laut|gemäß|selon|d['’]après|según)\s+", r""),
    (r"(?:根据|按照|依据)\s*", r""),
    (r"\b(?:files?|documents?|attachments?|datei|dokument|fichier|archivo)\s+(?:(?:named|called)\s+)?", r""),
    (r"(?:文件|文档|附件)\s*", r""),
    (r"\bwhat(?:['’]s| is| stands) in\s+", _ENDS),
    (r"\bwas (?:ist|steht) in\s+", _ENDS),
    (
        rf"(?:^|[.!?;:,]\s*|\b(?:please|to|and|you|then)\s+){_READ}\s+",
        rf"(?:{_ENDS}|\s+(?:and|for)\b)",
    ),
    (r"", r"\s+(?:file|pdf|spreadsheet|workbook|deck|datei)\b"),
)
# Beside these, around one of several words or with a figure in it: with the article, and "in the lease 2024".
_AROUND_LONG: Final[Sequence[tuple[str, str]]] = (
    (rf"\b(?:does|do|did)\s+(?:{_THE}\s+)?", rf"\s+{_SAYS}\b"),
    (rf"\b(?:according to|as per|laut|gemäß|selon|según)\s+{_THE}\s+", r""),
    (
        rf"\b(?:in|from|inside|within|aus|dans)\s+(?:{_THE}\s+)?",
        rf"(?:{_ENDS}|\s+(?:about|on|for|regarding|{_SAYS}|is|are|what|which|who|where|when|how)\b)",
    ),
)
_NO_TITLE = re.compile(  # a time or a part of a document, which many files have
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|januar|februar|märz|mai"
    r"|juni|juli|oktober|dezember|q[1-4]|quarter|year|week|day|chapter|section|page|part|figure|table|slide|sheet|step"
    r"|article|clause|appendix|version|level|class|type|phase|plan|model|room|number|no)?[\s_.-]*[\divx]+",
    re.IGNORECASE,
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
    text = _plain(whole)
    called: dict[str, set[str]] = {}
    for name in names:
        plain = _plain(name)
        # Of thousands, nearly none: however a name stands in a question, its first word does.
        if (first := _FIRST.search(plain)) and first[0] in text:
            called.setdefault(plain, set()).add(name)
    places = _places(text, called)
    if not places or not _are_all(text, places):
        return frozenset()
    return frozenset(name for place in places for name in called[place.key])


def _places(text: str, called: Collection[str]) -> list[_Place]:
    """Where names stand, in their order; of two that overlap the longer one."""
    found = [_Place(*span, name) for name in called if name in text for span in _standing(text, name)]
    stems = {name: PurePath(name).stem for name in called}
    often = Counter(stems.values())
    beside: list[_Place] = []
    for name, stem in stems.items():
        if often[stem] > 1 or stem == name or len(stem) < _FEWEST:
            continue
        for span, is_asked_of in _stems(text, stem):
            (found if is_asked_of else beside).append(_Place(*span, name))
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


def _stems(text: str, stem: str) -> Iterator[tuple[tuple[int, int], bool]]:
    """Where a name stands without its ending, and whether the words around it ask what is in that file."""
    spaced = " ".join(re.split(r"[\s_.-]+", stem)).strip()
    for form in dict.fromkeys((stem, spaced)):
        if not form or form not in text:
            continue
        is_title = _NO_TITLE.fullmatch(form) is None
        is_long = is_title and (" " in form or "-" in form or any(sign.isdigit() for sign in form))
        around = (*_AROUND, *_AROUND_LONG) if is_long else _AROUND
        for start, end in _standing(text, form):
            before, after = text[:start], text[end:]
            is_written_so = _is_quoted(before, after) or ("_" in form and is_title)
            yield (start, end), is_written_so or _fits(before, after, around) or _says_in_it(form, before, after)


def _says_in_it(form: str, before: str, after: str) -> bool:
    """Whether Chinese words ask what is said in it; Latin letters among them are a name, Chinese ones may be a word."""
    if not re.match(_IN_IT, after):
        return False
    return not _HAN.search(form) or (len(form) >= _FEWEST_HAN and not _HAN.match(before[-1:]))


def _fits(before: str, after: str, around: Iterable[tuple[str, str]]) -> bool:
    return any(re.search(rf"(?:{first})\Z", before) and re.match(then, after) for first, then in around)


def _is_quoted(before: str, after: str) -> bool:
    return bool(before) and after[:1] == _QUOTED.get(before[-1], "no")


def _are_all(text: str, places: Sequence[_Place]) -> bool:
    """Whether nothing but the named files is asked about."""
    said, at = "", 0
    for one in places:
        said, at = f"{said}{text[at : one.start]}{_NAME}", one.end
    said += text[at:]
    if _OTHERS.search(said) or _BUT.search(said) or _TOGETHER.search(said):
        return False
    if not _COMPARED.search(said):
        return True
    return all(beside["linked"] and _NAME in said[: beside.start()] for beside in _BESIDE.finditer(said))


def _standing(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Where a name stands by itself, and not within a longer one."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not _goes_on(text[at - 1 : at], name[0]) and not _goes_on(text[end : end + 1], name[-1]):
            goes_on = re.match(r"\.[^\W_]", text[end : end + 2])  # another ending
            if not goes_on or _HAN.match(text[end + 1 : end + 2]):
                yield at, end
        at = text.find(name, at + 1)


def _goes_on(sign: str, edge: str) -> bool:
    """Whether a sign beside a name belongs to a longer one; Chinese is written without spaces around names."""
    if not sign or _HAN.match(sign) or _HAN.match(edge):
        return False
    return sign.isalnum() or sign in "_-"


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
