"""A form that a PDF holds as XML alone is read field by field, or it is said in one sentence that it cannot be."""

from __future__ import annotations

import random
import time
import zlib
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from core.errors import BrokenDocumentError
from core.rag.document import Block
from core.rag.parsers import pdf_mupdf, pdf_xfa
from core.rag.parsers.catalog import PARSER_REGISTRY, PDF_READERS

NOTICE = (
    "Please wait... If this message is not eventually replaced, your viewer is not able to show it: get Adobe Reader."
)
FIELD = '<field name="{name}"><ui><{ui}/></ui>{more}<caption><value><text>{label}</text></value></caption></field>'


def field(name: str, label: str, ui: str = "textEdit", more: str = "") -> str:
    return FIELD.format(name=name, label=label, ui=ui, more=more)


KEPT = '<items save="1"><text>r</text><text>b</text></items><items><text>Red</text><text>Blue</text></items>'
TEMPLATE = (
    '<template xmlns="http://www.xfa.org/schema/xfa-template/3.3/"><subform name="form1">'
    "<pageSet><pageArea/></pageSet>"
    "<draw><value><text>Application for a harbour pass</text></value></draw>"
    '<draw presence="hidden"><value><text>never shown</text></value></draw>'
    '<subform name="Person">'
    + field("Family", "Family name:")
    + field("Married", "Married", "checkButton", "<items><text>1</text><text>0</text></items>")
    + field("Colour", "Colour", "choiceList", KEPT)
    + '<exclGroup name="Sex">'
    + field("f", "Female", "checkButton", "<items><text>F</text></items>")
    + field("m", "Male", "checkButton", "<items><text>M</text></items>")
    + '</exclGroup><field name="PlaceOfBirth"/></subform><subform name="Ship"><occur max="-1"/>'
    + field("Name", "Name of the ship")
    + "</subform>"
    + field("Send", "Send", "button")
    + "</subform></template>"
)
DATA = (
    '<xfa:datasets xmlns:xfa="http://www.xfa.org/schema/xfa-data/1.0/"><xfa:data><form1><Person><Family>Weber</Family>'
    "<Married>1</Married><Colour>b</Colour><Sex>M</Sex></Person><Ship><Name>Heron</Name></Ship>"
    "<Ship><Name>Gull</Name></Ship></form1></xfa:data></xfa:datasets>"
)
FIELDS = [
    "Family name: Weber",
    "Married: checked",
    "Colour: Blue (options: Red, Blue)",
    "Sex: Male (options: Female, Male)",
    "Place Of Birth: (empty)",
    "Name of the ship: Heron",
    "Name of the ship: Gull",
]


def pdf(path: Path, *, whole: str = "", notice: str = NOTICE, **parts: str) -> Path:
    """A PDF whose page says to wait, with a form of these parts."""
    document: Any = pymupdf.open()
    document.new_page().insert_textbox((50, 50, 500, 500), notice)
    told: list[str] = []
    for name, text in ({"": whole} if whole else parts).items():
        reference = document.get_new_xref()
        document.update_object(reference, "<<>>")
        document.update_stream(reference, text.encode())
        told.append(f"({name}) {reference} 0 R" if name else f"{reference} 0 R")
    given = told[0] if whole else f"[{' '.join(told)}]"
    document.xref_set_key(document.pdf_catalog(), "AcroForm", f"<</Fields[]/XFA {given}>>")
    document.save(path)
    return path


def read(path: Path, reader: str) -> list[Block]:
    parser, _ = PDF_READERS[reader]
    return [one for one in PARSER_REGISTRY[parser]().parse(path, path.name) if isinstance(one, Block)]


@pytest.mark.parametrize("reader", sorted(PDF_READERS))
def test_each_field_is_a_line_with_its_label_and_what_was_filled_in(reader: str, tmp_path: Path) -> None:
    blocks = read(pdf(tmp_path / "form.pdf", template=TEMPLATE, datasets=DATA), reader)
    assert [one.text for one in blocks] == ["Application for a harbour pass", "\n".join(FIELDS)]
    assert {one.page for one in blocks} == {1}


@pytest.mark.parametrize("reader", sorted(PDF_READERS))
def test_all_parts_may_stand_in_one_stream(reader: str, tmp_path: Path) -> None:
    whole = f'<xdp:xdp xmlns:xdp="http://ns.adobe.com/xdp/">{TEMPLATE}{DATA}</xdp:xdp>'
    assert FIELDS[0] in read(pdf(tmp_path / "form.pdf", whole=whole), reader)[-1].text


@pytest.mark.parametrize("reader", sorted(PDF_READERS))
def test_a_form_without_a_template_is_told_by_the_names_of_its_data(reader: str, tmp_path: Path) -> None:
    (block,) = read(pdf(tmp_path / "form.pdf", datasets=DATA), reader)
    assert block.text.splitlines()[0] == "Family: Weber"


@pytest.mark.parametrize("reader", sorted(PDF_READERS))
def test_a_form_of_which_nothing_can_be_read_is_told_in_one_sentence(reader: str, tmp_path: Path) -> None:
    with pytest.raises(BrokenDocumentError, match="drawn by Adobe's programs alone") as raised:
        read(pdf(tmp_path / "form.pdf", template="this is no XML", datasets="<"), reader)
    assert raised.value.words_key == "document_form_hidden"


@pytest.mark.parametrize("reader", sorted(PDF_READERS))
def test_a_page_that_says_more_than_to_wait_is_read_as_it_stands(reader: str, tmp_path: Path) -> None:
    blocks = read(pdf(tmp_path / "form.pdf", notice="The pass costs ten euros.", template=TEMPLATE), reader)
    assert [one.text for one in blocks] == ["The pass costs ten euros."]


@pytest.mark.parametrize("reader", sorted(PDF_READERS))
def test_entities_are_not_unfolded_and_no_file_is_fetched(reader: str, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the secret word")
    bomb = "".join(f'<!ENTITY a{at} "{f"&a{at - 1};" * 10}">' for at in range(1, 12))
    entities = f'<!DOCTYPE t [<!ENTITY a0 "ha">{bomb}<!ENTITY f SYSTEM "file://{tmp_path}/secret.txt">]>'
    data = entities + DATA.replace("Weber", "&a11;&f;Weber")
    text = "\n".join(one.text for one in read(pdf(tmp_path / "form.pdf", template=TEMPLATE, datasets=data), reader))
    assert "hahaha" not in text
    assert "secret word" not in text
    assert "Married" in text, "the rest of the form is told"


@pytest.mark.parametrize("reader", sorted(PDF_READERS))
def test_parts_without_end_are_read_to_a_bound(reader: str, tmp_path: Path) -> None:
    deep = "".join(f'<subform name="s{at}">' for at in range(200)) + "</subform>" * 200
    ships = "<Ship><Name>Heron</Name></Ship>" * 3_000
    template = TEMPLATE.replace("<pageSet>", f"{deep}<pageSet>")
    blocks = read(
        pdf(tmp_path / "form.pdf", template=template, datasets=DATA.replace("<Ship>", ships + "<Ship>", 1)), reader
    )
    assert sum(one.text.count("Name of the ship") for one in blocks) == 200


@pytest.mark.parametrize("reader", sorted(PDF_READERS))
def test_parts_within_parts_that_are_each_filled_in_many_times_are_read_to_a_bound(reader: str, tmp_path: Path) -> None:
    deep = '<subform name="Ship">' * 30 + "</subform>" * 30
    template = TEMPLATE.replace("<pageSet>", f"{deep}<pageSet>")
    filled = DATA.replace("<Ship>", "<Ship/>" * 200 + "<Ship>", 1)
    blocks = read(pdf(tmp_path / "form.pdf", template=template, datasets=filled), reader)
    assert len(blocks) < 50, "it comes to an end"


@pytest.mark.parametrize("filters", ["/FlateDecode", "[/FlateDecode/FlateDecode]", "[/ASCIIHexDecode/FlateDecode]"])
def test_a_part_that_unfolds_to_more_than_its_bound_is_not_unfolded(
    filters: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = 60_000
    monkeypatch.setattr(pdf_mupdf, "MOST_XFA_BYTES", bound)
    path = pdf(tmp_path / "form.pdf", template=TEMPLATE, datasets=DATA)
    document: Any = pymupdf.open(path)
    kept = b" " * (bound - len(DATA)) + DATA.encode()
    for content, is_read in ((kept, filters == "/FlateDecode"), (kept + b" ", False)):
        data = zlib.compress(content, 9)
        data = zlib.compress(data, 9) if filters.count("Flate") > 1 else data
        data = data.hex().encode() + b">" if "Hex" in filters else data
        reference = document.xref_get_key(document.pdf_catalog(), "AcroForm/XFA")[1].split("(datasets)")[1].split()[0]
        document.update_stream(int(reference), data, compress=0)
        document.xref_set_key(int(reference), "Filter", filters)
        document.save(tmp_path / "large.pdf")
        told = "\n".join(one.text for one in read(tmp_path / "large.pdf", "pymupdf"))
        assert ("Weber" in told) == is_read
        assert "Family name" in told, "the template is read all the same"


def test_many_fields_and_many_data_of_their_names_take_no_longer_than_both_together(tmp_path: Path) -> None:
    fields = "".join(field("Town", f"Town {at}") for at in range(4_000))
    template = TEMPLATE.replace("<pageSet>", f"{fields}<pageSet>", 1)
    towns = "".join(f"<Town>t{at}</Town>" for at in range(200_000))
    data = DATA.replace("<form1>", f"<form1>{towns}", 1)
    begun = time.process_time()
    told = "\n".join(one.text for one in pdf_xfa.blocks({"template": template.encode(), "datasets": data.encode()}, 1))
    assert "Town 3999: t3999" in told
    assert time.process_time() - begun < 5, "looking through all data for each field takes minutes"


@pytest.mark.parametrize("seed", range(20))
def test_each_field_takes_the_next_datum_of_its_name_and_the_last_one_stays(seed: int) -> None:
    """Whatever the order of fields and data, as one would find them by looking through all each time."""
    dice = random.Random(seed)
    names = ["A", "B", "C"]
    asked, given = dice.choices(names, k=30), [(dice.choice(names), f"v{at}") for at in range(dice.randrange(40))]
    template = f"<template><subform name='f'>{''.join(field(one, one) for one in asked)}</subform></template>"
    data = "".join(f"<{name}>{value}</{name}>" for name, value in given)
    packets = {"template": template.encode(), "datasets": f"<d><data><f>{data}</f></data></d>".encode()}
    expected: list[str] = []
    for at, name in enumerate(asked):
        mine = [value for one, value in given if one == name]
        expected.append(f"{name}: {mine[min(asked[:at].count(name), len(mine) - 1)] if mine else '(empty)'}")
    assert "\n".join(one.text for one in pdf_xfa.blocks(packets, 1)).splitlines() == expected
