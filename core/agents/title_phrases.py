"""Words that stand together in a text and say something by themselves: of these a small model picks a title.

No dictionary is here, only the small words of a language, which nothing of a phrase can be said without: what asks,
what joins, who acts. A phrase begins and ends where these do not tear it off: "damage be reported" is none, and neither
is "swallow live in Africa" after "does a". Where that cannot be told the text has no phrase there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LONGEST_PHRASE: Final = 60  # letters
_LONGEST_ZH: Final = 24
_MOST: Final = 80  # phrases
_READ: Final = 1_000  # letters of a text, at the most
_MOST_WORDS: Final = 60  # of a clause

Tongue: TypeAlias = Literal["en", "de", "zh", ""]
"""Whose words are known; empty for another language."""

Kind: TypeAlias = Literal["", "ask", "be", "do", "have", "we", "they", "me", "article", "of", "in", "ends", "opens"]
"""Of a word: content, what asks, forms of "be", modals and "do", forms of "have", who acts (first and second person, or
the third), whom, articles and the like, what joins two of a kind, prepositions, and words after which no phrase begins
("ends") or one may begin ("opens")."""

SCRIPT: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_KANA: Final = re.compile(r"[\u3040-\u30ff]")
WORD: Final = re.compile(r"[$€£]?[^\W_]+(?:['’.,:/+*&-]+[^\W_]+)*[%+#]*")
_OTHER_SCRIPT: Final = re.compile(r"[^\W\d_a-zA-Z\u00aa-\u024f]")

_EN: Final[Mapping[Kind, str]] = {
    "ask": "what which who whom whose where when how what's whats who's where's how's when's",
    "be": "is are was were am",
    "do": "do does did can could would should will shall may might must",
    "have": "has have had",
    "we": "i you we i'm i've i'd i'll you're we're",
    "they": "it he she they there here it's that's there's he's she's they're",
    "me": "me us him them",
    "article": """a an the my your our their his her its this these those some any each every another several both
no""",
    "of": "and or",
    "in": """of in on at for to from by with into about between against within without during after before under over
through since until via per among across behind beyond near around along towards onto upon out up off down""",
    "ends": """that if then than so as because although though while whether be been being not never but also just
really like mean means called named say says said yes ok okay let let's isn't aren't wasn't weren't
don't doesn't didn't can't cannot won't wouldn't shouldn't haven't hasn't hadn't""",
    "opens": """please tell show explain give help want need know thanks thank hello hi hey tells describes provides
contains shows explains covers discusses regarding""",
}
_DE: Final[Mapping[Kind, str]] = {
    "ask": """was wer wen wem wessen wann wo wohin woher wie welche welcher welches welchen welchem wieso weshalb
wieviel womit wofür wodurch worauf woran worin wozu""",
    "be": "ist sind war waren bin bist seid wäre wären sein gewesen",
    "do": """kann kannst können könnte könntest könnten muss musst müssen müsste soll sollte sollten sollen darf dürfen
will wollen wollte möchte möchten mag würde würden wird werden wurde wurden worden geworden""",
    "have": "hat habe haben hast hatte hatten hätte hätten",
    "we": "ich du wir",
    "they": "er es sie ihr man",
    "me": "mich mir dich dir uns euch ihn ihm ihnen sich",
    "article": """der die das den dem des ein eine einen einem einer eines mein meine meinen meinem meiner meines dein
deine deinen deinem deiner unser unsere unseren unserem unserer seine seinen seinem seiner ihre ihren ihrem ihrer kein
keine keinen keinem dieser diese dieses diesen diesem jede jeder jedes jeden jedem""",
    "of": "und oder",
    "in": """in im ins an am ans auf aus bei beim mit nach von vom zu zum zur für gegen ohne um über unter vor hinter
zwischen neben durch seit während wegen trotz bis innerhalb außerhalb per pro ab""",
    "ends": """nicht dass daß ob wenn weil denn als aber auch nur noch schon sehr mehr viel viele vielen vieler lange
oft hier dort so damit gibt gilt heißt heissen heißen kostet kosten liegt liegen steht stehen kommt
kommen macht machen geht gehen bedeutet dauert hallo danke ja nein""",
    "opens": "bitte sag sage zeig zeige erkläre erklär gib hilf hilfe",
}
_WORDS: Final[Mapping[str, Mapping[str, Kind]]] = {
    tongue: {word: kind for kind, words in kinds.items() for word in words.split()}
    for tongue, kinds in {"en": _EN, "de": _DE}.items()
}
_FOREIGN: Final = """de la le les el los las del des du un una une uno est que qué qui quel quelle quels quelles con di
il lo gli della para por como cómo cuál cuánto dónde com não uma os um et y och att som är det het
een van hoe wat waar jak jest czy na nie jaki jaka ile"""
_OTHER: Final = frozenset(_FOREIGN.split())
"""Small words of further European languages: where they are more than those that are known, no phrase is looked for."""
_MEASURES: Final = "many much long old far often big tall high deep fast soon large wide heavy few"
_DEGREE: Final = frozenset(_MEASURES.split())
_PARTICIPLE: Final = re.compile(r"[a-z]+ed|made|born|known|found|written|built|held|seen|given|taken|sold|sent|paid")
_ARTICLE_ITSELF: Final = frozenset(("a", "an", "the"))
_WHY: Final[Mapping[str, str]] = {"en": "why", "de": "warum"}
_PARTICLES: Final = frozenset(("out", "up", "off", "down"))
"""Words that belong to a verb before them."""
_TWO: Final = frozenset(("between", "zwischen", "both"))

_CLAUSE_ZH: Final = re.compile(r"[^\W_][\w《》<>+#%.\- ·]*|《[^《》\n]{1,20}》[\w《》+#%.\- ·]*")
_SEAM_ZH: Final = re.compile(
    r"是?在?(?:怎样|怎么|如何|为什么|什么时候|何时|哪一?年)(?![做办样了])(?=[^\W\d_A-Za-z])"
    r"|有(?:哪些|什么)(?=[^\W\d_A-Za-z]+的)"
)
"""What asks within a sentence that stands without it: "北京有哪些好玩的地方" is "北京好玩的地方"."""
_SPLIT_ZH: Final = re.compile(
    r"(?P<link>是|等于|叫做?|约?有|约|发生|为|由|被|在|于)?"
    r"(?P<asked>什么时候|什么|谁|哪一?[些个年位家种里儿]?|几[本个种条件张部篇家位名首道天年]"
    r"|(?P<torn>多少[米年个人次天元岁倍名只条种度公里钱]*|几(?!何|内亚|率|乎)))"
    r"|是?(?:为什么|怎么样|怎么办|怎么|怎样|如何)做?|吗(?!啡)|呢(?!绒)|请问|请(?![假求帖柬])|告诉|一下|是否|能否"
    r"|你好|您好|谢谢|(?P<who>[给帮]?(?:(?<!自)我|[你您它她])们?|(?<![其吉利])他们?)"
)
_LEADING_ZH: Final = re.compile(r"(?:可以|应该|想要|[是的]|一[个份篇首件张本部封])+")
_UNDONE_ZH: Final = re.compile(r"(?:的|必须|应该|需要|可以|想要?|[是在由被从和与及把将])$")
"""No run of letters that ends so is a phrase."""
_AFTER_OF_ZH: Final = re.compile(r"(?<!目)的(?![确士])")
ASKS_ZH: Final = re.compile(
    r"(?:是|由|被|叫做?|为|约?有|在|等于|于|约|发生)?"
    r"(?:什么时候|什么|多少[米年个人次天元岁倍名只条种度公里钱]*|谁|哪一?[些个年位家种里]?|几)"
    r"|是?(?:为什么|怎么样|怎么办|怎么|怎样|如何)做?|吗|呢|请问|请|告诉|一下|是否|能否|可以|可能会?|你好|您好|谢谢"
    r"|[我你您它他她]们?|给|写|一[个份篇首件张本部]"
)
"""What asks, and names nothing, in Chinese."""
DOCUMENT_ZH: Final = re.compile(r"总结|概括|看看|这[份篇个]|文件|文档|文章|附件|资料|内容|讲了?|介绍了?")
"""What points to a document, and says nothing of it, in Chinese."""


def tongue_of(text: str) -> Tongue:
    """The language of a text as far as its small words are known."""
    if _KANA.search(text):
        return ""
    if SCRIPT.search(text):
        return "zh"
    if _OTHER_SCRIPT.search(text):
        return ""
    words = [word.casefold() for word in WORD.findall(text)]
    counts = {tongue: sum(word in kinds for word in words) for tongue, kinds in _WORDS.items()}
    tongue: Tongue = "de" if counts["de"] > counts["en"] else "en"
    return "" if sum(word in _OTHER for word in words) > counts[tongue] else tongue


def phrases(text: str, also: str = "", *, points: bool = True) -> list[str]:
    """The phrases of a text, as they stand there, in their order: at most 80, of at most 60 letters each.

    Args:
        text: Some sentences, of which the first 1,000 letters are read.
        also: A text that says the same otherwise, the reply: what stands together there as well is a phrase for sure.
        points: Words that point to a document may stand in them (in Chinese).
    """
    text = text[:_READ]
    tongue = tongue_of(text)
    if tongue == "zh":
        found = _phrases_zh(text, points=points)
    elif tongue:
        plain = _spaced(also[:_READ])
        found = (one for clause in _clauses(text, tongue) for one in clause.phrases(plain))
    else:
        return []
    kept: dict[str, None] = {}
    for one in found:
        if len(one) <= (LONGEST_PHRASE if tongue != "zh" else _LONGEST_ZH):
            kept[one] = None
        if len(kept) == _MOST:
            break
    return [*kept]


def _spaced(text: str) -> str:
    return f" {' '.join(WORD.findall(text)).casefold()} ".replace("’", "'")


# -- Chinese ----------------------------------------------------------------------------------------------------------


def _phrases_zh(text: str, *, points: bool) -> Iterator[str]:
    """Runs of letters between what asks: whole, from "的" on, and two over what asks where that leaves a sentence.

    Words of Chinese have no ends that letters show: a run is torn nowhere else.
    """
    for clause in _CLAUSE_ZH.findall(text[:_READ] if points else DOCUMENT_ZH.sub("\n", text[:_READ])):
        runs, seam = [*_runs_zh(clause)], _SEAM_ZH.search(clause)
        if seam:
            after = clause[seam.end() :]
            runs += _runs_zh(clause[: seam.start()] + (after.removesuffix("的") if seam[0][0] == "是" else after))
        for run in runs:
            yield run
            for cut in _AFTER_OF_ZH.finditer(run):
                yield run[cut.end() :]


def _runs_zh(clause: str) -> Iterator[str]:
    start, begins = 0, True
    for asks in [*_SPLIT_ZH.finditer(clause), None]:
        end = asks.start() if asks else len(clause)
        run = clause[start:end].strip(" .-·")
        run = run[leading.end() :] if (leading := _LEADING_ZH.match(run)) else run
        if (
            begins
            and run
            and not (start and run[0] in "之内以后前")
            and not _UNDONE_ZH.search(run)
            and (asks is None or not _misses(asks, clause))
        ):
            yield run
        if asks:
            start, begins = asks.end(), not asks["torn"]


def _misses(asks: re.Match[str], clause: str) -> bool:
    """Whether what stands before a word that asks misses it: "吃" before "什么药"."""
    if asks["who"]:
        return True
    return bool(asks["asked"]) and not (
        asks["link"] in {"是", "等于", "叫", "叫做", "有", "约有", "约", "发生", "为"}
        or (asks["link"] and asks.end() == len(clause))
    )


# -- languages with spaces --------------------------------------------------------------------------------------------


def _clauses(text: str, tongue: Tongue) -> Iterator[_Clause]:
    """What stands between two signs, word for word."""
    words: list[str] = []
    end = -1
    for word in WORD.finditer(text):
        if end >= 0 and (text[end : word.start()].strip(" \t\u00a0") or len(words) == _MOST_WORDS):
            yield _Clause(words, tongue)
            words = []
        words.append(word[0])
        end = word.end()
    if words:
        yield _Clause(words, tongue)


@dataclass(frozen=True, slots=True)
class _Run:
    """Words of a clause in which a phrase may stand.

    Args:
        first: Place of its first word in the clause.
        end: Place behind its last one.
        opens: A phrase may begin with the first word.
        sure: A question turns nothing around in it.
        states: It follows "is" in a question: what is asked about, and perhaps a participle.
    """

    first: int
    end: int
    opens: bool
    sure: bool
    states: bool


class _Clause:
    """Words between two signs.

    Args:
        words: As they stand there.
        tongue: Their language.
    """

    def __init__(self, words: Sequence[str], tongue: Tongue) -> None:
        self._words, self._tongue = words, tongue
        self._folds = [word.casefold().replace("’", "'") for word in words]
        known = _WORDS[tongue]
        self._kinds: list[Kind] = [known.get(fold, "") for fold in self._folds]
        if tongue == "en":
            for place in range(1, len(words)):  # "how many days"
                if self._folds[place - 1] == "how" and self._folds[place] in _DEGREE:
                    self._kinds[place] = "ask"
        elif tongue == "de":
            self._end_at_verbs()

    def phrases(self, also: str) -> Iterator[str]:
        """All that may stand by themselves.

        Args:
            also: The reply, word for word: where the question turns words around, what stands in it stands together.
        """
        why = next((place for place, fold in enumerate(self._folds) if fold == _WHY[self._tongue]), len(self._words))
        for run in self._runs(why):
            ends = [place for place in range(run.first, run.end) if self._may_end(place, run)]
            for first in range(run.first, run.end):
                if not self._may_begin(first, run):
                    continue
                for last in ends if run.sure else range(first, run.end):
                    if last < first or not self._holds(first, last):
                        continue
                    if run.sure or (not self._kinds[last] and self._is_said(first, last, also, ends=last in ends)):
                        yield " ".join(self._words[first : last + 1])
        if why < len(self._words):
            yield " ".join(self._words[why:])

    def _is_said(self, first: int, last: int, also: str, *, ends: bool) -> bool:
        """Whether the reply has these words together, and does not go on as the question does."""
        words = self._folds[first : last + 2]
        whole, longer = (f" {' '.join(one)} " for one in (words[: last + 1 - first], words))
        return whole in also and (ends or longer not in also)

    def _runs(self, limit: int) -> Iterator[_Run]:
        """The runs of words between those that ask, act and help, with what is known of each."""
        first, opens, sure, states = 0, True, True, False
        for place in range(limit + 1):
            kind: Kind = self._kinds[place] if place < limit else "ends"
            if states and not kind and self._is_participle(place, first, limit):
                kind = "ends"
            if kind in {"", "article", "of", "in"}:
                continue
            if first < place:
                yield _Run(first, place, opens, sure, states)
            if place < limit:
                opens, sure, states = self._opened(place)
            first = place + 1

    def _opened(self, place: int) -> tuple[bool, bool, bool]:
        """What is known of words behind one: whether a phrase may begin, whether it is sure, whether "is" is before."""
        kind, fold, before = self._kinds[place], self._folds[place], self._kinds[place - 1] if place else None
        after = self._kinds[place + 1] if place + 1 < len(self._kinds) else "ends"
        asks = self._asks(place)
        match kind:
            case "ask":
                is_named = fold.endswith("'s") or fold == "whats"
                return (fold == "which" and asks) or is_named or fold in _DEGREE, True, is_named
            case "be":
                word = self._folds[place - 1] if place else ""
                is_plain = before == "ask" and (word in {"what", "where", "who"} or word in _DEGREE)
                if self._tongue == "de":
                    return True, True, True
                return bool(asks), is_plain or not asks, is_plain
            case "do":
                return True, not asks or after in {"we", "they"} or self._tongue == "de", False
            case "we":
                return before in {"do", None, "opens", "ends"}, True, False
            case "me":
                return fold in {"me", "us", "mir", "uns"}, True, False
            case "opens":
                return True, True, False
            case _:
                return False, True, False

    def _asks(self, place: int) -> bool:
        """Whether a clause asks up to a word: it begins with that, or with what asks."""
        start = next((at for at in range(place + 1) if self._kinds[at] not in {"in", "of", "opens", "me"}), place)
        return start == place or self._kinds[start] == "ask"

    def _is_participle(self, place: int, first: int, limit: int) -> bool:
        """Whether "is" a few words before makes this one a part of the verb: "where is cheese made in France"."""
        after = self._kinds[place + 1] if place + 1 < limit else "ends"
        return place > first and after in {"in", "of", "ends"} and bool(_PARTICIPLE.fullmatch(self._words[place]))

    def _may_begin(self, place: int, run: _Run) -> bool:
        kind, before = self._kinds[place], self._kinds[place - 1] if place > run.first else None
        named = next((at for at in range(run.first, run.end) if not self._kinds[at]), run.end)
        if not {"in", "of"}.isdisjoint(self._kinds[named:place]):
            return False  # "Europe use the euro" of "countries in Europe use the euro"
        if place > named and not _PARTICLES.isdisjoint(self._folds[run.first : run.end]):
            return False
        if kind == "article":
            is_plain = self._tongue == "en" and self._folds[place] in _ARTICLE_ITSELF
            return is_plain and (before == "in" or (before is None and run.opens))
        if kind:
            return False
        if self._tongue == "de" and not self._is_noun(place):
            return before == "article" and self._folds[place].endswith(("e", "er", "es"))
        return before in {"article", "in"} or (before is None and run.opens)

    def _may_end(self, place: int, run: _Run) -> bool:
        if self._kinds[place] or (self._tongue == "de" and not self._is_noun(place)):
            return False
        if place + 1 == run.end:
            after: Kind = self._kinds[place + 1] if place + 1 < len(self._kinds) else "ends"
            takes = after in {"me", "we"} or (place + 1 < len(self._folds) and self._folds[place + 1] == "it")
            return not takes
        after = self._kinds[place + 1]
        if self._tongue == "de":
            return bool(after) or not self._is_noun(place + 1)
        # "made of" at the end of a clause is a verb, and no part of it says anything
        return after in {"in", "of"} and place + 2 < run.end

    def _holds(self, first: int, last: int) -> bool:
        """Whether what says that there are two has both."""
        within = self._folds[first : last + 1]
        if not _TWO.isdisjoint(within) and self._kinds[last + 1 : last + 2] == ["of"]:
            return False
        return not _TWO.intersection(within) or any(kind == "of" for kind in self._kinds[first : last + 1])

    # -- German: nouns have large letters, and verbs stand where no noun follows

    def _is_noun(self, place: int) -> bool:
        return not self._kinds[place] and (self._words[place][0].isupper() or self._words[place][0].isdigit())

    def _end_at_verbs(self) -> None:
        """Small words before which no noun follows are verbs, or say how something is: no phrase has them."""
        follows: dict[int, bool] = defaultdict(bool)
        for place in range(len(self._words) - 1, -1, -1):
            if not self._kinds[place]:
                follows[place] = self._is_noun(place) or follows[place + 1]
        for place, kind in enumerate(self._kinds):
            is_first = place == 0 or self._kinds[place - 1] not in {"article", "in", "of", ""}
            if not kind and not self._is_noun(place) and (not follows[place] or is_first):
                self._kinds[place] = "ends"
