"""Names of people, places and organisations in English and Chinese, and whether a text knows them."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from core.rag.claims.lists import listed
from core.rag.claims.romans import parts_in
from core.rag.numerals import number_of_roman
from core.rag.search.terms import EMPTY_CHARACTERS, STOP_WORDS, terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_DOTTED = re.compile(r"\b(?:[A-Z]\.){2,}")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+(?:['’-][A-Za-z\u00c0-\u024f]+)*")
_JOINS = re.compile(
    r" (?:of (?:the )?|for (?:the )?|and |& |the |de (?:la )?|van (?:der )?|von |der |la |le |du |di |da |al-)?|-|\.? "
)
_JOINING: Final = listed("of and for the")
_NO_NAMES: Final = listed("""
    january february march april may june july august september october november december jan feb mar apr jun jul aug
    sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mr mrs ms dr prof sir lady lord no
    yes however although according since while during after before when where who what which why how despite both
    many most some several other others also later then thus therefore moreover furthermore additionally finally
    first second third one two three four five six seven eight nine ten in on at by for from with of to as and or but
    if page section chapter table figure part note please there these those this that such each every all any
    ok bce ce ad bc am pm spring summer autumn winter celsius fahrenheit kelvin earth sun internet
    gov sen rep gen col capt lt jr sr millionen milliarden mio mrd milioni miliardi millones milliards
    yeah yep nope oh wow hi hello hey okay sure well actually
    """)
_PREFIXES: Final = listed("ex non anti pro pre post mid half semi pan trans inter")  # of a name they make another word
_ARTICLES: Final = listed(
    "der die das den dem des ein eine einen einem einer eines le la les un une des el los las una il lo gli"
)
# In German every noun has a capital, and a small model writes more of them. What English tells of "El Salvador" or
# "Die Hard" is of a name.
_ENGLISH: Final = re.compile(r"\b(?:the|is|are|were|has|had|of|and|by|with|from|to)\b")
_GERMAN: Final = re.compile(
    r"\b(?:der|das|dem|ein|eine|einen|einem|einer|eines|ist|sind|wurde|wurden|wird|werden|und|nicht|mit|von|vom|zum|zur|im"
    r"|für|auf|aus|nach|bei|sich|oder|als|über|durch|hatte|haben|kein|keine|zu|beim|unter|gegen|seit|um|viele|gibt)\b|\b[Dd]ie\s[A-ZÄÖÜ]\w+\s(?:hat|war|will)\b"
)
_INFLECTED: Final = re.compile(r"(?:e|en|er|es|em|ei|wei)\Z")  # "Drei Parteien", "Viele Menschen"
_NEAR: Final = 200  # letters behind such a name in which English is looked for
_PEOPLES: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(same)
    for name, *same in (
        ("american", "america", "us", "usa", "americans", "states"),
        ("america", "us", "usa", "states"),
        ("us", "usa", "america", "american", "states"),
        ("usa", "us", "america", "american", "states"),
        ("british", "britain", "uk", "england", "english", "kingdom"),
        ("britain", "uk", "british", "kingdom"),
        ("uk", "britain", "british", "kingdom", "england"),
        ("english", "england", "british"),
        ("french", "france"),
        ("dutch", "netherlands", "holland"),
        ("spanish", "spain"),
        ("swiss", "switzerland"),
        ("danish", "denmark"),
        ("irish", "ireland"),
        ("welsh", "wales"),
        ("finnish", "finland"),
        ("polish", "poland"),
        ("chinese", "china", "prc"),
        ("states", "us", "usa", "america", "american"),
        ("united", "us", "uk", "usa", "un", "uae", "american", "british"),
        ("kingdom", "uk", "britain", "british"),
        ("european", "europe", "eu"),
        ("greek", "greece"),
        ("thai", "thailand"),
        ("nyc", "york"),
        ("norwegian", "norway"),
        ("scottish", "scotland"),
        ("filipino", "philippines"),
        ("burmese", "burma", "myanmar"),
        ("soviet", "ussr"),
        ("ussr", "soviet"),
        ("isil", "isis", "daesh"),
        ("isis", "isil", "daesh"),
        ("covid", "coronavirus", "cov"),
        ("coronavirus", "covid", "cov"),
        ("cov", "covid", "coronavirus"),
        ("sars", "covid", "coronavirus"),
    )
}
# Of these, other words for the same are in use ("KBE", "BA", "the duke"), so that half of such a name is enough.
_RANKS: Final = listed(
    """
    duke duchess prince princess king queen earl count countess baron order knight commander officer member bachelor
    master doctor arts science sciences philosophy president presidential governor minister secretary senator chairman
    director chief executive day award awards prize season series league cup championship festival division district
    county city empire university college school street avenue road
    """
)
# They say what a thing is, and stand beside its name or do not: "Barings Bank PLC", "the Dayton Peace Treaty".
_KINDS: Final = listed(
    """
    treaty agreement accord accords pact convention war battle operation bank plc inc ltd llc corp corporation company
    group holdings gmbh ag museum party union republic people's people plant station park island islands river lake
    mount mountain mountains sea ocean hemisphere state province region airport bridge theatre theater stadium church
    school library foundation association society agency office department ministry commission committee council
    programme program project festival tour show series magazine newspaper
    """
)
# What is told of a place is told of its continent as well, and no passage says on which one it lies.
_CONTINENTS: Final = listed(
    "africa african africans asia asian asians europe european europeans america americas afrika asien europa amerika"
)
_SIDES: Final = listed("north south east west northern southern eastern western central latin")
_COUNTRY: Final = ("south", "africa")
_LEAST_PREFIX = 4  # letters that "Canadian" and "Canada" share
_LONGEST_PREFIX = 12
_LONGEST_WORD = 40
_LONG_ENOUGH = 6  # letters of a name that may be spelled in two ways

SURNAMES = frozenset(
    "王李张劉刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方"
    "石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文"
)
_TITLES = (
    "先生|女士|小姐|教授|博士|医生|老师|主席|总统|总理|部长|市长|"
    "省长|局长|经理|董事长|总裁|院长|校长|将军|上校|同志|法官|律师"
)
_TITLED = re.compile(rf"(?P<name>[\u4e00-\u9fff]{{1,3}}?)(?={_TITLES})")
_QUOTED = re.compile(r"《([^《》\n]{1,40})》|“([^“”\n]{2,30})”|「([^「」\n]{2,30})」|\"([^\"\n]{2,60})\"")
_FOREIGN = re.compile(r"[\u4e00-\u9fff]{1,8}(?:·[\u4e00-\u9fff]{1,8})+")
_DOTS = re.compile(r"([\u4e00-\u9fff]{1,2})·(?=([\u4e00-\u9fff]{1,2}))")
_PIECE = re.compile(rf"{_LATIN_WORD.pattern}|[\u4e00-\u9fff]+")
_SUFFIXES = (
    "自治区|大学|学院|公司|集团|医院|银行|委员会|研究所|研究院|博物馆|出版社|市|省|县|州|镇|村|岛|山|河|湖|路|街"
)
# Where the two characters before it are a name is guessed, so that a part of another word must not stand among them.
_PLACED = re.compile(rf"(?P<name>[\u4e00-\u9fff]{{2}})(?P<suffix>{_SUFFIXES})(?![场民价值略钱委级线程径过边人区内外])")
_NO_PART_OF_NAMES = EMPTY_CHARACTERS | frozenset("各每某该本此外前后来去到给向说讲家间让使用种些样行节")
_HAN_PLACES = re.compile(
    "中国|日本|韩国|朝鲜|蒙古|越南|泰国|老挝|柬埔寨|缅甸|印度尼西亚|印度|印尼|巴基斯坦|孟加拉|尼泊尔|斯里兰卡|新加坡|马来西亚|菲律宾|伊朗|伊拉克"
    "|以色列|土耳其|沙特|埃及|南非|尼日利亚|肯尼亚|俄罗斯|苏联|乌克兰|波兰|德国|法国|英国|英格兰|苏格兰|爱尔兰|荷兰|比利时|瑞士|瑞典|挪威|芬兰|丹麦"
    "|奥地利|匈牙利|捷克|希腊|意大利|西班牙|葡萄牙|美国|加拿大|墨西哥|古巴|巴西|阿根廷|智利|秘鲁|澳大利亚|澳洲|新西兰|北京|上海|天津|重庆|香港"
    "|澳门|台湾|台北|高雄|广州|深圳|成都|武汉|南京|杭州|苏州|西安|长沙|沈阳|大连|青岛|济南|郑州|厦门|福州|昆明|河北|山西|辽宁|吉林|黑龙江|江苏|浙江"
    "|安徽|福建|江西|山东|河南|湖北|湖南|广东|广西|海南|四川|贵州|云南|陕西|甘肃|青海|西藏|新疆|宁夏|内蒙古|东京|大阪|首尔|伦敦|巴黎|柏林|莫斯科"
    "|纽约|华盛顿|洛杉矶|欧洲|亚洲|非洲|北美|南美"
)
_NO_PLACES = listed("城市 都市 农村 乡村 道路 公路 铁路 高山 股市 上市 超市 分公司 本公司")
_HAN = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Name:
    """A name, as a sentence has it.

    Args:
        words: As it stands there.
        parts: What must be known for it to be known: folded words, or pieces of Chinese.
        start: Where it begins.
        begins: Whether a sentence begins with it, so that its capital says nothing.
        is_noun: Whether it may be any noun, as in German, where all have capitals.
    """

    words: str
    parts: tuple[str, ...]
    start: int
    begins: bool = False
    is_noun: bool = False


@lru_cache(8_192)  # a name comes again and again
def folded(text: str) -> str:
    """A word in small letters without accents."""
    lower = text.casefold().replace("’", "'").removesuffix("'s").removesuffix("'")
    if lower.isascii():
        return lower
    return "".join(letter for letter in unicodedata.normalize("NFKD", lower) if not unicodedata.combining(letter))


def undotted(text: str) -> str:
    """The text with "U.S." as "US"."""
    return _DOTTED.sub(lambda found: found[0].replace(".", ""), text)


def names_of(sentence: str) -> list[Name]:
    """The names in a sentence; those of a text in capitals or in title case are none."""
    plain = undotted(unicodedata.normalize("NFKC", sentence))
    found = _latin_names(plain)
    if _HAN.search(plain):
        found += _chinese_names(plain)
    return sorted(found, key=lambda one: one.start)


def _latin_names(text: str) -> list[Name]:
    words = list(_LATIN_WORD.finditer(text))
    if not words:
        return []
    capital = [word for word in words if word[0] != word[0].lower()]
    if not capital:
        return []
    long = [word for word in words if len(word[0]) > 3]
    if len(long) > 3 and sum(word[0][0].isupper() for word in long) > 0.8 * len(long) and not _HAN.search(text):
        return []  # a title
    runs: list[list[re.Match[str]]] = []
    counted = {one.start for one in parts_in(text)}  # these are figures
    for word in capital:
        if len(word[0]) < 2 or word.start() in counted:
            continue
        small = folded(word[0])
        if small in _NO_NAMES or (small in STOP_WORDS and not word[0].isupper()):
            continue
        if runs and _JOINS.fullmatch(text, runs[-1][-1].end(), word.start()):
            runs[-1].append(word)
        else:
            runs.append([word])
    in_german = _GERMAN.search(text) is not None and not _ENGLISH.search(text)
    named = (_named(text, run, in_german=in_german) for run in runs if not _is_a_thing(text, run))
    return [one for one in named if one.parts]


def _named(text: str, run: list[re.Match[str]], *, in_german: bool) -> Name:
    """The name that capitalised words beside each other are."""
    start, end = run[0].start(), run[-1].end()
    is_first = _is_beginning(text, start)
    begins = is_first and len(run) == 1 and run[0][0][1:].islower() and not run[0][0].endswith("s'")
    whole = (word[0] if word[0][0].isupper() else re.split("['’]", word[0])[-1] for word in run)  # dell'America
    parts = tuple(part for word in whole for part in folded(word).split("-") if len(part) > 1)
    parts = tuple(part for part in parts if part not in _PREFIXES) or parts
    if len(run) > 1 and is_first and text.startswith(" of ", run[0].end()):
        parts = parts[1:]  # "Merger of Japanese Banks"
    return Name(text[start:end], parts, start, begins, in_german and _is_noun(text, run))


def _is_noun(text: str, run: list[re.Match[str]]) -> bool:
    """Whether a capital of a German text says nothing: it is at one word, or at an adjective that begins a sentence."""
    if len(run) == 1 and run[0][0].isupper():
        return False
    beside = any(text[one.end() : other.start()] == " " for one, other in pairwise(run))
    first = run[0][0]
    is_inflected = bool(_INFLECTED.search(first) or _GERMAN.fullmatch(first.lower()))
    is_inflected = is_inflected and len(run) == 2 and _is_beginning(text, run[0].start())
    return not beside or is_inflected


def _is_a_thing(text: str, run: list[re.Match[str]]) -> bool:
    """Whether a sentence of another language begins with an article, and an ordinary word with a capital."""
    start, end = run[0].start(), run[-1].end()
    return folded(run[0][0]) in _ARTICLES and _is_beginning(text, start) and not _ENGLISH.search(text, end, end + _NEAR)


def _is_beginning(text: str, start: int) -> bool:
    before = text[max(0, start - 12) : start].rstrip(" \"'“‘(*_`[")
    return not before or before[-1] in ".!?:;。！？：；\n|"


def _chinese_names(text: str) -> list[Name]:
    found: list[Name] = []
    for match in _QUOTED.finditer(text):
        inside = next(group for group in match.groups() if group is not None)
        if pieces := tuple(_PIECE.findall(inside)):
            found.append(Name(match[0], tuple(folded(piece) for piece in pieces), match.start()))
    for match in _FOREIGN.finditer(text):  # where it begins and ends nobody sees
        parts = tuple(part for dot in _DOTS.finditer(match[0]) for part in dot.groups())
        found.append(Name(match[0], parts, match.start()))
    for match in _TITLED.finditer(text):
        at = next((at for at, letter in enumerate(match["name"]) if letter in SURNAMES), None)
        if at is not None:
            name = match["name"][at:]
            found.append(Name(name, (name,), match.start() + at))
    for match in _PLACED.finditer(text):
        whole = match[0]
        if _NO_PART_OF_NAMES.isdisjoint(match["name"]) and not any(whole.endswith(one) for one in _NO_PLACES):
            found.append(Name(whole, (match["name"],), match.start()))
    found += [Name(match[0], (match[0],), match.start()) for match in _HAN_PLACES.finditer(text)]
    return found


def is_person(span: str) -> bool:
    """Whether a few Chinese characters may be a person's name."""
    return 2 <= len(span) <= 3 and span[0] in SURNAMES and all(map(_HAN.match, span))


class KnownNames:
    """The words of texts, in which names are looked for.

    Args:
        texts: Passages, their headings and documents, the question.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        whole = undotted(unicodedata.normalize("NFKC", "\n".join(texts)))
        words = dict.fromkeys(_LATIN_WORD.findall(whole))
        self._words = {folded(part) for word in words for part in (word, *re.split("[-'’]", word))}
        self._prefixes = {
            word[:length]
            for word in self._words
            if word.isascii()
            for length in range(_LEAST_PREFIX, min(len(word), _LONGEST_PREFIX) + 1)
        }
        self._whole = whole
        self._initials = _initials_in(whole)
        self._numbered = _numbered_in(whole)
        self._capitals = {folded(word) for word in words if len(word) > 1 and word.isupper()}
        self._han = "".join(_HAN.findall(whole)) if _HAN.search(whole) else ""
        self._pairs = {first + second for first, second in pairwise(self._han)}

    def has(self, name: Name) -> bool:
        """Whether all parts of a name stand there, an abbreviation for the words or the other way round."""
        if any(numeral not in self._numbered.get(word, (numeral,)) for word, numeral in _numerals_of(name)):
            return False  # Louis XIV is no Louis XV
        there = sum(map(self.has_part, name.parts))
        own = [part for part in name.parts if part not in _KINDS]
        if own and len(own) < len(name.parts) and all(map(self.has_part, own)):
            return True
        ranks = len(_RANKS.intersection(name.parts))
        if there == len(name.parts) or (ranks and 2 * max(there, ranks) >= len(name.parts)):
            return True
        if "".join(name.parts) in self._words or self._has_surname(name):
            return True
        initials = "".join(part[0] for part in name.parts)
        return len(initials) > 1 and initials in self._capitals

    def allows(self, name: Name) -> bool:
        """Whether a text with these words may well have it: as it stands, or in part, or as a place of a continent."""
        if self.has(name) or (self._is_german and self._is_of_nouns(name)):
            return True
        if "-" in name.words and " " not in name.words and any(map(self.has_part, name.parts)):
            return True  # "Anglo-Irish"
        return _is_continent(name) and _CONTINENTS.isdisjoint(self._words)

    def _has_surname(self, name: Name) -> bool:
        """Whether the last word of a name stands there with a capital, and no other name before it."""
        words = [folded(word) for word in name.words.split(" ")]
        own = set(name.parts) - _KINDS - _RANKS
        if len(words) < 2 or set(words) != own or words[-1] not in self._before:
            return False
        others = self._before[words[-1]] - own
        return all(any(_mistyped(one) & _mistyped(mine) for mine in own) for one in others)  # Alan is Allan

    def _is_of_nouns(self, name: Name) -> bool:
        """Whether the words of a name may be nouns beside a known name, or a noun alone, as all have a capital."""
        return any(map(self.has_part, name.parts)) if len(name.parts) > 1 else not name.words.isupper()

    @cached_property
    def _is_german(self) -> bool:
        """Whether the texts are in German rather than in English."""
        return len(_GERMAN.findall(self._whole)) > len(_ENGLISH.findall(self._whole))

    @cached_property
    def _before(self) -> dict[str, set[str]]:
        """By the words that always have a capital, the ones with a capital before them."""
        words = list(_LATIN_WORD.finditer(self._whole))
        small = {word[0] for word in words if word[0].islower()}
        found: dict[str, set[str]] = {}
        for last, word in pairwise([None, *words]):
            name = folded(word[0]) if word else ""
            if word is None or not word[0][0].isupper() or name in small:
                continue
            found.setdefault(name, set())
            if last and last[0][0].isupper() and self._whole[last.end() : word.start()] in {" ", ". "}:
                before = folded(last[0])
                found[name] |= {before} - _RANKS - _NO_NAMES - STOP_WORDS
        return found

    def spells_out(self, name: Name) -> bool:
        """Whether a name is an abbreviation whose words stand there: "National Air and Space Museum (NASM)"."""
        return len(name.parts) == 1 and name.words.isupper() and name.parts[0] in self._initials

    def has_part(self, part: str) -> bool:
        """Whether a word of a name stands there, also as a form of it."""
        if _HAN.match(part):
            return part in self._pairs if len(part) == 2 else part in self._han
        if part in self._words or part in self._initials or self._words & _PEOPLES.get(part, frozenset()):
            return True
        singular = part[:-1] if part.endswith("s") else f"{part}s"
        if singular in self._words:
            return True
        if number_of_roman(part.upper()):
            return False  # XXXVI is no form of XXXVII
        length = max(_LEAST_PREFIX, min(len(part) - 3, _LONGEST_PREFIX))
        if len(part) > _LEAST_PREFIX and part[:length] in self._prefixes:
            return True
        if len(part) >= _LONG_ENOUGH and not self._mistyped.isdisjoint(_mistyped(part)):
            return True
        return (len(part) > _LONG_ENOUGH and _spelled(part) in self._spellings) or not self._stems.isdisjoint(
            terms(part)
        )

    @cached_property
    def _mistyped(self) -> set[str]:
        return {form for word in self._words if len(word) >= _LONG_ENOUGH for form in _mistyped(word)}

    @cached_property
    def _spellings(self) -> set[str]:
        return {_spelled(word) for word in self._words if len(word) > _LONG_ENOUGH}

    @cached_property
    def _stems(self) -> set[str]:
        return {stem for word in self._words for stem in terms(word)}


def _is_continent(name: Name) -> bool:
    """Whether it is a continent, or a part of one: "Central Europe"."""
    return name.parts[-1] in _CONTINENTS and _SIDES.issuperset(name.parts[:-1]) and name.parts != _COUNTRY


def _mistyped(word: str) -> set[str]:
    """A word, and this with one letter left out: two that share one are the same but for a slip of the pen."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(1, len(word) if len(word) <= _LONGEST_WORD else 0))}


def _spelled(word: str) -> str:
    """A word as it sounds about: "MacDougal" and "McDougall", "Mohammed" and "Muhammad" are spelled in two ways."""
    return re.sub(r"(\w)\1+", r"\1", re.sub(r"[aeiouy]+", ".", re.sub(r"\Amac(?=[^aeiouyk])", "mc", word)))


_NUMBERED = re.compile(r"([^\W\d_]+) ([IVX]{2,7})(?!\w)")


def _numbered_in(text: str) -> dict[str, set[str]]:
    """By the word before them, the Roman numerals of kings, wars and games."""
    found: dict[str, set[str]] = {}
    for word, numeral in _NUMBERED.findall(text):
        if word[0].isupper() and number_of_roman(numeral):
            found.setdefault(folded(word), set()).add(numeral)
    return found


def _numerals_of(name: Name) -> Iterator[tuple[str, str]]:
    """Each Roman numeral of a name, with the word before it."""
    for word, numerals in _numbered_in(name.words).items():
        yield from ((word, numeral) for numeral in numerals)


def _initials_in(text: str) -> set[str]:
    """The abbreviations that capitalised words beside each other would have."""
    found: set[str] = set()
    letters: list[str] = []
    end = 0
    for word in _LATIN_WORD.finditer(text):
        if word[0] in _JOINING:
            continue
        if word[0][0].isupper() and (not letters or _JOINS.fullmatch(text, end, word.start())):
            letters = [*letters[-5:], word[0][0].lower()]
        else:
            letters = [word[0][0].lower()] if word[0][0].isupper() else []
        end = word.end()
        found.update("".join(letters[-length:]) for length in range(2, len(letters) + 1))
    return found
