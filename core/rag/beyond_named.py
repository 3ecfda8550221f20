"""Whether a question that names files may be about others as well, by the words around the names.

A file that is left out is missed more than one that is read in vain. So all files are asked at any sign that one is
named to be left out, to be held against something else, to be written to, or only to tell of it.
"""

from __future__ import annotations

import re
from typing import Final

NAME: Final = "\ue000"
"""Stands for a name in a question."""
FILES: Final = (
    r"(?:files?|documents?|docs?|pdfs?|attachments?|papers?|sources?|reports?|contracts?|letters?|sheets?|slides?|books?"
    r"|ones?|dateien?|dokumente?n?|fichiers?|documentos?|archivos?)"
)
LINK: Final = (
    r"(?:\b(?:with|to|and|or|against|versus|vs\.?|from|than|mit|und|oder|zu|von|avec|et|ou|à|con|y|и|с)\b"
    r"|[和与跟同比及或、&])"
)
LEADS: Final = r"\s*+(?:(?:in|file|the|of|that)\s++)*+"
THE: Final = r"(?:the|my|our|this|that|these|those|der|die|das|dem|den|meine[mnrs]?|les?|la|el|los|las)"
_QUOTE: Final = r"[\"“„'‘`«「『《]?"
_UNQUOTE: Final = r"[\"”“'’`»」』》]?"

# Written in letters of which no words are known here: Greek, Armenian, Hebrew, Arabic, those of India, Thai, Georgian …
_STRANGE = re.compile(r"[\u0370-\u03ff\u0530-\u10ff\u1200-\u1dff\u2c00-\u2dff\ua000-\uabff\U00010000-\U0001d3ff]")
_OTHERS = re.compile(
    rf"\bothers\b|\bother (?:\w+ )?{FILES}\b|\bother (?:two|three|four|five)\b|\beverything else\b|\ball else\b"
    rf"|\bthe rest\b(?! of\b)|\bthe rest of (?:them\b|(?:the |my |these |those )?{FILES}\b)"
    rf"|\b(?:all|each|every|any|both)(?: of)?(?: the| my| these| those)?(?: \w+)? {FILES}\b"
    rf"|\bwhich (?:of (?:the|my|these|those) )?(?:\w+ )?{FILES}\b|\bhow many {FILES}\b"
    r"|\b(?:the|my|our|these|those) (?:files|documents|attachments)\b"
    r"|\b(?:what|who|where|something|anything|somewhere|anywhere) else\b|\b(?:elsewhere|everywhere|anywhere|also)\b"
    r"|\btoo\s*(?:[.,:;?!]|\Z)|\bas well\b(?! as)|\bnot (?:only|just|merely)\b|\betc\b|\band so on\b"
    rf"|{LINK}\s*(?:everything|anything|somewhere|another|all)\b|\bin addition\b|\badditionally\b"
    r"|\banderen?\b|\bübrigen\b|\brestlichen\b|\balle[nr]? (?:\w+ )?(?:dateien|dokumente)"
    r"|\bwelche[rs]? (?:datei|dokument)|\b(?:sonst|überall|woanders|auch|ausserdem)\b"
    r"|\b(?:les|des|aux) autres\b|\bautres (?:fichiers|documents)|\btous les\b|\bquels? (?:fichier|document)"
    r"|\b(?:ailleurs|partout|aussi|également)\b"
    r"|\b(?:los|las) (?:otr|demás)|\botros (?:archivos|documentos)|\btodos los\b|\bqué (?:archivo|documento)"
    r"|\b(?:también|altri|altre|anche|outros|outras|também|andere|ook)\b|\bдруг(?:ие|их|ими|ой)\b|\b(?:остальн|вс[её]х?\b|также\b)"
    r"|其他|其它|其余|别的|另外|另一|还有|(?:所有|全部|每个|每份|这些|哪个|哪些|哪份|几个|几份)(?:的)?(?:文件|文档|附件|资料)"
    r"|他の|ほかの|すべて|全て|다른|모든|나머지"
)
_LEFT_OUT: Final = (  # with up to two words between it and the name: "do not look into report.pdf"
    r"(?:except|besides?|other than|apart from|aside from|without|excluding|exclude|but not|not|never|cannot|\w+n['’]t"
    r"|outside|beyond|instead of|rather than|minus|in addition to|along with|together with|as well as|ignor(?:e|ing)"
    r"|disregard(?:ing)?|skip(?:ping)?|forget|omit(?:ting)?|never mind|leav(?:e|ing) (?:out|aside)"
    r"|ohne|ausser|ausserhalb|statt|anstatt|anstelle|neben|zusätzlich|abgesehen|ignorier\w*|nicht"
    r"|sauf|hors|dehors|en plus|outre|à part|sans|ignore[rz]?|pas|excepto|salvo|además|aparte|a parte|fuera|sin|no"
    r"|tranne|eccetto|oltre|senza|behalve|zonder|exceto|além|sem|oprócz|poza|kromě|utom|förutom|uten|unntatt|undtagen"
    r"|paitsi|kecuali|selain|кроме|помимо|без|исключая|не)"
)
_TOLD_OF: Final = (  # right before the name
    r"(?:includ(?:e|ing)|mention(?:s|ed|ing)?|cit(?:e|es|ed|ing)|quot(?:e|es|ed|ing)|contradict(?:s|ed|ing)?"
    r"|supersed(?:e|es|ed|ing)|replac(?:e|es|ed|ing)|amend(?:s|ed|ing)?|violat(?:e|es|ed|ing)|breach(?:es|ed|ing)?"
    r"|follow(?:s|ed|ing)?|repeal(?:s|ed)?|like|as|similar to|refer(?:s|red|ring)? to|referenc(?:e|es|ed|ing)"
    r"|related to|linked to|based on|upload(?:ed)?|added|attached)"
)
_WRITTEN: Final = r"(?:create|write|make|generate|produce|draft|update|overwrite|rename|send|delete|build|prepare)"
_STORED: Final = r"(?:write|save|export|store|put|add|append|copy|move|output|print|convert)"
_ASIDE = re.compile(
    rf"\b{_LEFT_OUT}(?:\s+[^\s.,;:!?{NAME}]+){{0,2}}\s+{_QUOTE}{NAME}"
    rf"|\b{_TOLD_OF}\s+(?:the\s+|file\s+|document\s+){{0,2}}{_QUOTE}{NAME}"
    rf"|\b{_WRITTEN}\s+(?:me\s+)?(?:(?:a|an|the|new|file)\s+)*{_QUOTE}{NAME}"
    rf"|\b{_STORED}\b[^.;?!]*\b(?:to|into|in|as)\s+(?:a\s+|the\s+|file\s+)*{_QUOTE}{NAME}"
    rf"|(?<!what )(?<!here )(?<!this )\b(?:is|was)\s+(?:the\s+|file\s+)*{_QUOTE}{NAME}"
    rf"|{NAME}{_UNQUOTE}\s+(?:(?:is|was|has|been|be)\s+)*(?:mentioned|cited|quoted|referenced|referred|contradicted"
    r"|superseded|replaced|amended|excluded|ignored|aside|beiseite|hariç|dışında)\b"
    rf"|\b(?:leav|lass|lässt)\w*\s+(?:\w+\s+)?{_QUOTE}{NAME}{_UNQUOTE}\s+(?:out|away|weg)\b"
    rf"|(?:除了?|不要看?|(?<!分|区|性|类|级|识)别看?|不看|不用|不含|不在|忽略|跳过|引用了?|提到了?|类似)\s*{_QUOTE}{NAME}"
    rf"|{NAME}{_UNQUOTE}\s*(?:以外|之外|除外|を除|말고|제외|외에|이외)"
    r"|\byou(?: \w+)? (?:answered|said|used|looked|took|cited|quoted|meant)\b"
)
_COMPARED = re.compile(
    r"\bcompar|\bcontrast|\bversus\b|\bvs\b|\bdiffer|\bdeviat|\bmatch|\bagree|\bconsistent|\bsame as\b|\bthan\b|\bvergl"
    r"|\bagainst\b|\bin line with\b|\bcompl(?:y|ies|iant)\b|\bconform|\b(?:old|new)er\b"
    r"|\bunterschied|\babweich|\bweicht\b|\bdiff[ée]ren|\bсравн|\bотлич|比|区别|不同|差异|差别|一致|相同|异同|違い|비교"
)
_BESIDE = re.compile(  # what stands right beside a name is compared with it, if it is no name itself
    rf"(?P<linked>{LINK}{LEADS}{_QUOTE}{NAME})"
    rf"|{NAME}{_UNQUOTE}\s*+(?:(?:differs?|deviates?|compares?|match(?:es)?|agrees?)\s++)?+{LINK}{LEADS}(?!{NAME})"
    rf"|\b(?:same as|consistent with|in line with)\b{LEADS}(?!{NAME})"
)
_AND = r"(?:and|or|as well as|und|oder|et|ou|y)"
_TOGETHER = re.compile(
    rf"{NAME},? (?:{_AND}|&) (?:(?:in|from|of|for) )?{THE} |\b{THE} (?:\w+ ){{1,2}}(?:{_AND}|&) {NAME}"
    rf"|{NAME}\s*(?:和|与|跟|以及|及|还有|、)\s*(?!{NAME})|(?<=[^{NAME}\s])(?:和|与|跟|以及|及|、)\s*{NAME}"
)

_ASKS: Final = r"(?:what|who|whom|whose|where|which|how|why|when)"
_SENTENCE = re.compile(r"[^.!?;。！？；]+(?:[.!?;](?!\s|\Z)[^.!?;。！？；]*)*(?:[.!?;。！？；]+|\Z)")
_QUESTION = re.compile(
    rf"[?？]|^\s*{_ASKS}\b|\b(?:tell|give|show|list|find)\b|什么|多少|谁|哪|怎|几|吗|呢|か。?$"
    r"|^\s*(?:was|wer|wo|wie|wann|warum|welche\w*|que|qui|où|quand|combien|qué|quién|cuánto)\b"
)
_BACK = re.compile(  # "and when?" asks on, too
    rf"\b(?:it|its|there|they|their|therein|(?:this|that|the) (?:file|document|pdf|one))\b|^\W*(?:and\W+)?{_ASKS}\W*\Z"
)
_OPENED = re.compile(
    rf"^\W*(?:(?:please|now|first|then|can you|could you)\s+)*(?:(?:open|read|look|use|see|take|check|consult|search"
    rf"|answer|only|in|from|about|regarding)\b|{NAME}\W*\Z)"
)
_SECOND = re.compile(
    rf"{NAME}[^{NAME}]*?,?\s(?:and|but)\s+(?P<second>(?:{_ASKS}|is|are|was|were|does|do|did|can|has|have)\s+\w[^{NAME}]*)\Z"
)
_SAID_BY_TWO = re.compile(
    rf"\b(?:if|while|whereas|although|though|but)\b[^{NAME}.?!]*\b(?:says?|shows?|states?|claims?|meant|mean)\b"
)
_LONGEST: Final = 2_000  # letters of a question; what is left of a longer one has fewer


def is_about_others(said: str) -> bool:
    """Whether a question may be about more than the files that it names.

    Args:
        said: The question, case folded, with `NAME` in place of each name.
    """
    said = said[:_LONGEST]
    if any(sign.search(said) for sign in (_STRANGE, _OTHERS, _ASIDE, _TOGETHER, _SAID_BY_TWO)):
        return True
    if _asks_beside(said):
        return True
    if not _COMPARED.search(said):
        return False
    return not all(beside["linked"] and NAME in said[: beside.start()] for beside in _BESIDE.finditer(said))


def tells_of_others(said: str) -> bool:
    """Whether a question without names tells of other files, of all of them, or compares; case folded, as above."""
    return any(sign.search(said[:_LONGEST]) for sign in (_STRANGE, _OTHERS, _COMPARED))


def _asks_beside(said: str) -> bool:
    """Whether something is asked in words of its own, which neither name a file nor point back to one."""
    sentences = _SENTENCE.findall(said)
    if not any(_OPENED.match(one) for one in sentences if NAME in one) and any(
        _QUESTION.search(one) and not _BACK.search(one) for one in sentences if NAME not in one
    ):
        return True
    seconds = (_SECOND.search(one.rstrip(".!?;。！？； ")) for one in sentences)
    return any(found and not _BACK.search(found["second"]) for found in seconds)
