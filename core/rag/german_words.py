"""Words of German questions about tables, and the forms that names of columns and values take in such questions.

They are known in German questions alone: "was" and "die" are English words, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_SURE: Final = re.compile(
    r"\b(?:wie ?viele?|anzahl|summe|gesamt\w*|durchschnitt\w*|mittelwert|welche[rsnm]?|prozentsatz|anteil|gibt es"
    r"|wer|wie (?:hoch|gross|lautet|lauten)|was (?:ist|sind|war|waren)"
    r"|(?:höchst|grösst|niedrigst|kleinst|geringst|maximal|minimal)e[rsnm]?"
    r"|(?:umsatz|umsätze|einnahmen|ausgaben|erlöse?|gewinn|kosten) (?:je|pro|nach|im|in))\b"
)

WORDS: Final = """
count|gibt es eine, gibt es einen, gibt es ein, gab es eine, gab es einen
count|wie viele, wieviele, wie viele der, wieviele der, anzahl der, anzahl, anzahl an, anzahl von, anzahl aller
share|prozentsatz der, prozentsatz, anteil der, anteil, wie viel prozent der, wie viel prozent, \
wieviel prozent der, wieviel prozent, welcher anteil der, welcher anteil
figure sum|summe der, summe des, summe von, summe aller, summe, gesamtsumme der, gesamtsumme des, gesamtsumme, \
gesamt, gesamte, gesamten, gesamter, gesamtes
figure average|durchschnitt der, durchschnitt des, durchschnitt von, durchschnitt aller, durchschnitt, \
durchschnittlich, durchschnittliche, durchschnittlicher, durchschnittliches, durchschnittlichen, mittelwert der, \
mittelwert des, mittelwert, mittlere, mittlerer, mittleres, mittleren
figure median|median der, median des, median von, median
figure highest|höchste, höchster, höchstes, höchsten, maximale, maximaler, maximales, maximalen, maximum der, \
maximum des, maximum
figure highest:largest|größte, größter, größtes, größten
figure lowest|niedrigste, niedrigster, niedrigstes, niedrigsten, geringste, geringster, geringstes, geringsten, \
minimale, minimaler, minimales, minimalen, minimum der, minimum des, minimum
figure lowest:smallest|kleinste, kleinster, kleinstes, kleinsten
dated highest|späteste, spätester, spätestes, spätesten, neueste, neuester, neuestes, neuesten
dated lowest|früheste, frühester, frühestes, frühesten
most highest|die meisten, den meisten, meisten, am meisten
most lowest|die wenigsten, den wenigsten, wenigsten, am wenigsten
owned highest|mit dem höchsten, mit der höchsten, mit den höchsten, mit dem größten, mit der größten, \
mit den größten
owned lowest|mit dem niedrigsten, mit der niedrigsten, mit den niedrigsten, mit dem kleinsten, mit der kleinsten, \
mit dem geringsten, mit der geringsten, mit den geringsten
which|welche, welcher, welches, welchen, in welcher, in welchem
who|wer
thing people|personen, person, leute
thing staff|mitarbeiter, mitarbeiterinnen, mitarbeitern, beschäftigte, beschäftigten, angestellte, angestellten, \
schüler, studenten, studierende
thing sales|bestellungen, bestellung, aufträge, auftrag, verkäufe, verkäufen
verb work|arbeiten, arbeitet, arbeitete, arbeiteten, sind beschäftigt, beschäftigt
verb live|wohnen, wohnt, wohnten, leben, lebt
verb pay|verdient, verdienen, verdiente
implied highest/age|älteste, ältester, ältestes, ältesten, am ältesten
implied lowest/age|jüngste, jüngster, jüngstes, jüngsten, am jüngsten
implied highest/price|teuerste, teuerster, teuerstes, teuersten, am teuersten
implied lowest/price|billigste, billigster, billigstes, billigsten, günstigste, günstigster, günstigstes, \
günstigsten, am billigsten, am günstigsten
sold highest|am besten verkauft, am meisten verkauft, am häufigsten verkauft, meistverkaufte, meistverkauftes, \
meistverkauften, meistverkaufter
none|kein, keine, keinen, ohne, haben keine, haben keinen, hat keine, hat keinen
list|liste, liste alle, nenne alle, nenne mir alle, liste mir alle
compare >/age|älter als
compare </age|jünger als
compare >/price|teurer als
compare </price|billiger als, günstiger als
thing|zeile, zeilen, eintrag, einträge, einträgen, datensatz, datensätze, datensätzen
compare >|mehr als, größer als, höher als, über, liegt über, liegen über, später als
compare >:after|nach dem
compare <|weniger als, kleiner als, niedriger als, geringer als, unter, früher als
compare <:before|vor, vor dem
compare >=|mindestens, wenigstens, größer gleich
compare >=:since|seit, seit dem, ab, ab dem
compare <=|höchstens, maximal, bis zu, kleiner gleich
or_more >=|oder mehr, und mehr, oder höher
or_more <=|oder weniger, oder niedriger
not|aber nicht, nicht, ist nicht, sind nicht, war nicht, waren nicht, wurde nicht, wurden nicht, ungleich
is|ist, sind, war, waren, gleich, wurde, wurden
between|zwischen
to|bis
each :per|je, pro
each :by|nach, gruppiert nach, aufgeteilt nach, aufgeschlüsselt nach
each :for each|für jede, für jeden, für jedes, in jeder, in jedem, jeder, jedes
period month|monat, monate, monaten
period quarter|quartal, quartale, quartalen
period year|jahr, jahre, jahren
contains|enthält, enthalten
and|und, sowie
filler|der, die, das, den, dem, des, ein, eine, einen, einer, eines, in, im, am, an, auf, aus, von, vom, bei, \
beim, für, mit, zu, zum, zur, was, wie hoch, wie groß, wie lautet, wie lauten, wie viel, es, gibt, gibt es, \
gab es, haben, hat, hatte, hatten, alle, aller, allen, bitte, zeige, zeig, nenne, mir, insgesamt, tabelle, \
spalte, blatt, datei, wert, werte, worden, berechne, ermittle, liegen, liegt, stehen, steht, stammen, kommen, \
sich, im jahr, im jahre, und die, und der, und das, dabei
"""
_ENDINGS: Final = ("", "e", "n", "en", "s", "es", "er", "ern")
_OF_ADJECTIVES: Final = ("e", "en", "er", "es", "em")
_UMLAUTS: Final = {"a": "ä", "o": "ö", "u": "ü"}
_LONG: Final = re.compile(r"\b(gesamt|durchschnitts)(?=[^\W\d_]{3,})")
_LEAST: Final = 3  # letters of a name that has other forms
_NUMBERED: Final = re.compile(r"(?:s?(?:nummer|nr|kennung|code|schlüssel)|-?id)\.?$")


def is_german(question: str) -> bool:
    """Whether a word of a question is one that German questions about tables have, and English ones have not."""
    return bool(_SURE.search(question.casefold()))


def forms_in_german(name: str) -> set[str]:
    """The forms that a noun may take, in lower case: "betrag" is "beträge" and "beträgen" as well."""
    if len(name) < _LEAST or not name[-1].isalpha() or not name[-1] < "\u2e80":
        return {name} if name else set()
    found = {name + ending for ending in _ENDINGS}
    if name.endswith(("e", "er", "el", "en")):
        found |= {f"{name}n", f"{name}s"}
    for ending in ("en", "n", "e"):  # "Bestellungen", of which one is a "Bestellung"
        if name.endswith(ending) and len(name) > len(ending) + _LEAST:
            found.add(name.removesuffix(ending))
    at = max((name.rfind(letter) for letter in _UMLAUTS), default=-1)
    at -= at > 0 and name[at - 1 : at + 1] == "au"
    if at >= 0 and " " not in name[at:]:
        changed = f"{name[:at]}{_UMLAUTS[name[at]]}{name[at + 1 :]}"
        found |= {changed + ending for ending in ("", "e", "en", "er", "ern")}
    return found


def forms_of_value(value: str) -> set[str]:
    """The forms that a word takes before a noun: "offen" in "offene Bestellungen"; none of what is no single word."""
    return {value + ending for ending in _OF_ADJECTIVES} if value.isalpha() and value[-1] < "\u2e80" else set()


def taken_apart(text: str, known: Callable[[str], bool], names: Collection[str]) -> str:
    """A text with a space within "gesamtbetrag" where a column is called "Betrag", and none "Gesamtbetrag".

    Args:
        known: Whether a word is what a column is called.
        names: What is called so as a whole.
    """

    def parted(found: re.Match[str]) -> str:
        end = re.compile(r"\w+").match(text, found.start())
        word = end[0] if end else ""
        rest = word[len(found[1]) :]
        if word in names or not known(rest):
            return found[1]
        return f"{found[1].removesuffix('s') if found[1] == 'durchschnitts' else found[1]} "

    return _LONG.sub(parted, text)


def numbers(name: str, form: str) -> bool:
    """Whether a column tells these from one another: "bestellnummer" tells one "bestellung" from the other."""
    stem = _NUMBERED.sub("", name)
    return stem != name and len(stem) > _LEAST and form.startswith(stem)
