"""German questions on rows are told by program as English ones are, and left where they are not clear."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag.counted import counted
from core.rag.german_words import forms_in_german, is_german, numbers
from core.rag.library import Library
from tests.core.rag.shop_rows import (
    GERMAN,
    TO_GERMAN,
    Order,
    count,
    held,
    mean,
    number,
    share,
    sheet,
    sums_by,
    total,
    units,
)
from tests.core.rag.test_rows_told import workbook

BY_WORDS = {"retrieval_type": "keyword"}


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", BY_WORDS) as opened:
        yield opened


@pytest.fixture(scope="module")
def laden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("laden")
    with Library.open(folder / "library", BY_WORDS) as opened:
        opened.add(workbook(folder / "laden.xlsx", Bestellungen=sheet(GERMAN, TO_GERMAN)))
        yield opened


def figures(library: Library, question: str, *earlier: str) -> list[Any]:
    ids = [one.id for one in library.documents()]
    return [one.computed for one in counted(library, ids, question, earlier=earlier).passages]


def each(sums: dict[str, float]) -> str:
    return ", ".join(number(one) for one in sorted(sums.values(), reverse=True))


def are_open(one: Order) -> bool:
    return one.status == "open"


def ost(one: Order) -> bool:
    return one.region == "East"


def amount(one: Order) -> float:
    return one.amount


SUMS = sums_by(lambda one: one.region, amount)
ROWS = sums_by(lambda one: one.region, lambda _: 1)
MEANS = {key: value / ROWS[key] for key, value in SUMS.items()}


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("Wie viele Bestellungen sind offen?", count(are_open)),
        ("Wieviele Bestellungen sind offen?", count(are_open)),
        ("Wie viele offene Bestellungen gibt es?", count(are_open)),
        ("Wie viele bezahlte Bestellungen gibt es in Ost?", count(lambda one: one.status == "paid" and ost(one))),
        ("Wie viele Bestellungen gibt es in der Region Ost?", count(ost)),
        ("Wie viele Bestellungen haben den Status offen?", count(are_open)),
        ("Wie viele Bestellungen mit Status offen gibt es?", count(are_open)),
        ("Wie viele Bestellungen haben einen Betrag über 5000?", count(lambda one: one.amount > 5_000)),
        ("Wie viele Bestellungen haben einen Betrag von mindestens 5000?", count(lambda one: one.amount >= 5_000)),
        ("Wie viele Bestellungen haben einen Betrag unter 5000 €?", count(lambda one: one.amount < 5_000)),
        ("Wie viele Bestellungen haben einen Betrag zwischen 5000 und 9000?",
         count(lambda one: 5_000 <= one.amount <= 9_000)),
        ("Wie viele Zeilen haben den Status bezahlt?", count(lambda one: one.status == "paid")),
        ("Was ist die Anzahl der offenen Bestellungen?", count(are_open)),
        ("Anzahl der Bestellungen mit Status offen", count(are_open)),
        ("Was ist die Summe der Beträge in Ost?", total(ost)),
        ("Wie hoch ist die Summe der Beträge in der Region Ost?", total(ost)),
        ("Summe der Beträge der offenen Bestellungen", total(are_open)),
        ("Wie hoch ist der Gesamtbetrag der offenen Bestellungen?", total(are_open)),
        ("Was ist die Summe der Mengen in Ost?", units(ost)),
        ("Was ist der durchschnittliche Betrag in Ost?", mean(ost)),
        ("Wie hoch ist der Durchschnitt der Beträge in Ost?", mean(ost)),
        ("Was ist der höchste Betrag in Ost?", number(max(one.amount for one in held(ost)))),
        ("Welche Bestellung hat den höchsten Betrag?", max(held(bool), key=amount).number),
        ("Welche offene Bestellung hat den niedrigsten Betrag?", min(held(are_open), key=amount).number),
        ("Was ist die Bestellung mit dem höchsten Betrag?", max(held(bool), key=amount).number),
        ("Durchschnittlicher Betrag je Region", each(MEANS)),
        ("Wie hoch ist der durchschnittliche Betrag pro Region?", each(MEANS)),
        ("Gesamtbetrag nach Region", each(SUMS)),
        ("Summe der Beträge für jede Region", each(SUMS)),
        ("Wie viele Bestellungen gibt es je Region?", each(ROWS)),
        ("Wie viele Bestellungen gibt es im März 2024?",
         count(lambda one: (one.day.year, one.day.month) == (2024, 3))),
        ("Wie viele Bestellungen gibt es seit dem 1. März 2024?", count(lambda one: f"{one.day}" >= "2024-03-01")),
        ("Wie viele Bestellungen gibt es nach dem 01.03.2024?", count(lambda one: f"{one.day}" > "2024-03-01")),
        ("Wie viele Bestellungen gibt es im Jahr 2024?", count(lambda one: one.day.year == 2024)),
        ("Wie hoch ist der Gesamtbetrag je Jahr?",
         ", ".join(number(value) for _, value in sorted(sums_by(lambda one: str(one.day.year), amount).items()))),
        ("Welcher Anteil der Bestellungen ist offen?", share(are_open)),
        ("Wie viel Prozent der Bestellungen sind offen?", share(are_open)),
        ("Wie viele Bestellungen wurden zurückgegeben?", count(lambda one: one.returned == "yes")),
        ("Wie viele Bestellungen wurden nicht zurückgegeben?", count(lambda one: one.returned == "no")),
        ("Top 3 Produkte nach Gesamtbetrag", ", ".join(
            number(one) for one in sorted(sums_by(lambda one: one.product, amount).values(), reverse=True)[:3])),
        ("Was sind die drei größten Bestellungen nach Betrag?", ", ".join(
            number(one.amount) for one in sorted(held(bool), key=amount, reverse=True)[:3])),
    ],
)  # fmt: skip
def test_german_words_say_what_english_ones_say(laden: Library, question: str, right: str) -> None:
    assert figures(laden, question) == [right]


def test_a_german_question_goes_on(laden: Library) -> None:
    west = count(lambda one: one.region == "West")
    for question in ("und in West?", "Und in der Region West?", "Was ist mit West?", "Und im West?"):
        assert figures(laden, question, "Wie viele Bestellungen gibt es in der Region Ost?") == [west]
    assert figures(laden, "und im Westen?", "Wie viele Bestellungen gibt es in der Region Ost?") == []


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("Wie viele Bestellungen gibt es?", "47"),
        ("Wie viele Bestellungen sind in der Datei?", "47"),
        ("Wie viele Zeilen hat die Tabelle?", "47"),
        ("Wie viele Einträge gibt es insgesamt?", "47"),
        ("Wie viele Spalten hat das Blatt Bestellungen?", "9"),
        ("Wie viele Blätter hat die Arbeitsmappe?", "1"),
        ("Wie viele Bestellungen gibt es wirklich?", None),
        ("Wie viele Betten gibt es?", None),
    ],
)
def test_what_has_no_condition_is_counted(laden: Library, question: str, right: str | None) -> None:
    assert figures(laden, question) == ([] if right is None else [right])


def test_two_german_questions_are_both_told(laden: Library) -> None:
    both = [count(are_open), total(are_open)]
    assert figures(laden, "Wie viele Bestellungen sind offen und wie hoch ist deren Gesamtbetrag?") == both
    assert figures(laden, "Wie viele Bestellungen sind offen und wie hoch ist der Gesamtbetrag?") == []


@pytest.mark.parametrize(
    "question",
    [
        "Wie viele Bestellungen sind fast offen?",
        "Wie viele Bestellungen sind nicht offen?",
        "Wie viele Bestellungen sind offen oder bezahlt?",
        "Wie viele Bestellungen haben einen Betrag über 5.000?",  # five thousand, or five
        "Wie viele Bestellungen haben einen Betrag über 5000,50?",
        "Wie viele Bestellungen sind im Osten?",
        "Wie viele Kunden wurden zurückgegeben?",
        "Was ist die Summe der Status in Ost?",
        "Was ist der durchschnittliche Betrag je Kunde?",
        "Was ist der durchschnittliche Betrag pro Monat?",
        "Größter Betrag nach Region",
        "Wie viele dieser Bestellungen sind offen?",
        "Wie viele Bestellungen davon sind offen?",
        "Wie viele Bestellungen sind dort offen?",
        "Welche drei Produkte sind offen?",
        "Was ist die Summe der Beträge nach Status und Region?",
        "Wie viele Bestellungen gibt es ohne Ost?",
        "Wie viele Bestellungen gibt es außer in Ost?",
        "Wie viele Bestellungen sind keine offenen?",
        "Warum sind so viele Bestellungen offen?",
        "Was ist der letzte Betrag in Ost?",
        "Was ist die Summe der drei höchsten Beträge in Ost?",
    ],
)
def test_what_leaves_a_doubt_is_left_to_the_model(laden: Library, question: str) -> None:
    assert figures(laden, question) == []


def test_another_name_is_no_form_of_a_value(library: Library, tmp_path: Path) -> None:
    rows = [["Rechnung", "Kunde", "Betrag"], ["a", "Bau", 5], ["b", "Bauer", 7], ["c", "Ros", 9]]
    library.add(workbook(tmp_path / "rechnungen.xlsx", Rechnungen=rows))
    assert figures(library, "Was ist die Summe der Beträge von Bauer?") == ["7"]
    assert figures(library, "Was ist die Summe der Beträge von Rosen?") == []
    assert figures(library, "Was ist die Summe der Beträge von Rosen GmbH?") == []


def test_a_small_word_is_no_form_of_a_value(library: Library, tmp_path: Path) -> None:
    rows = [["Lampe", "Schalter"], ["a", "ein"], ["b", "aus"], ["c", "ein"]]
    library.add(workbook(tmp_path / "lampen.xlsx", Lampen=rows))
    assert figures(library, "Wie viele Zeilen haben eine Lampe?") == []
    assert figures(library, "Wie viele Zeilen haben den Schalter ein?") == ["2"]


def test_a_number_of_another_thing_tells_no_rows_apart(library: Library, tmp_path: Path) -> None:
    rows = [["Kundennummer", "Bestellnummer", "Status"], [1, 7, "offen"], [1, 8, "offen"], [2, 9, "bezahlt"]]
    library.add(workbook(tmp_path / "liste.xlsx", Bestellungen=rows))
    assert figures(library, "Wie viele Bestellungen sind offen?") == ["2"]


def test_a_column_that_is_called_so_is_no_sum(library: Library, tmp_path: Path) -> None:
    rows = [["Rechnung", "Betrag", "Gesamtbetrag", "Ort"], ["a", 5, 6, "Ulm"], ["b", 7, 9, "Ulm"]]
    library.add(workbook(tmp_path / "rechnungen.xlsx", Rechnungen=rows))
    assert figures(library, "Was ist der höchste Gesamtbetrag in Ulm?") == ["9"]
    assert figures(library, "Was ist der Gesamtbetrag in Ulm?") == []


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("betrag", "beträge"), ("betrag", "beträgen"), ("preis", "preise"), ("kategorie", "kategorien"),
        ("kunde", "kunden"), ("bestellungen", "bestellung"), ("umsatz", "umsätze"), ("ort", "orte"), ("haus", "häuser"),
    ],
)  # fmt: skip
def test_nouns_take_these_forms(name: str, form: str) -> None:
    assert form in forms_in_german(name)


def test_which_questions_are_german() -> None:
    assert all(map(is_german, ["Wie viele sind offen?", "Größter Betrag", "Umsatz je Quartal", "Was ist die Summe?"]))
    assert not any(
        map(is_german, ["How many are open?", "What was the sum in Die?", "有多少？", "top 3 products", "Was it?"])
    )
    assert numbers("bestellnummer", "bestellung")
    assert not numbers("kundennummer", "bestellung")


@given(st.text(max_size=30))
def test_any_name_is_a_form_of_its_own(name: str) -> None:
    assert not name or name in forms_in_german(name)
    assert all(forms_in_german(name))
