"""Versions, units, denials of other languages and subjects of sentences are told apart, and equal values are equal."""

from __future__ import annotations

import pytest

from core.rag.claims.check import check_claims

ROWS = "\n".join(f"Line {n}: the secret of row {n} is {n * 37 % 9999 + 17}" for n in range(7760, 7790))
ROWS_ZH = "\n".join(f"第{n}行的密码是{n * 37 % 9999 + 17}。" for n in range(7760, 7790))
FALSE = [
    ("The current version is 2.10.", "The current version is 2.1.", "amount"),
    ("Install version 2.10 of the program.", "Install version 2.1 of the program first.", "amount"),
    ("Python 3.10 is needed for the program.", "Python 3.1 is needed for the program.", "amount"),
    ("See section 4.10 on the deductible for storm.", "See section 4.1 on the deductible for storm.", "amount"),
    ("Release 2.1.10 mends the export.", "Release 2.1.1 mends the export.", "amount"),
    ("程序的当前版本是2.10。", "程序的当前版本是2.1。", "amount"),
    ("Paris is the capital of Germany.", "Berlin is the capital of Germany.", "name"),
    ("Paris is the capital of Germany.", "Berlin is the capital of Germany. Paris is the capital of France.", "name"),
    ("Die Garantie gilt nicht für Akkus.", "Die Garantie gilt für Akkus.", "denial"),
    ("Die Garantie gilt für Akkus.", "Die Garantie gilt nicht für Akkus.", "denial"),
    ("Die Garantie gilt für Akkus.", "Die Garantie gilt für Akkus nicht.", "denial"),
    ("Die Garantie deckt keine Akkus ab.", "Die Garantie deckt Akkus ab.", "denial"),
    ("La garantie ne couvre pas les batteries.", "La garantie couvre les batteries.", "denial"),
    ("La garantie couvre les batteries.", "La garantie ne couvre pas les batteries.", "denial"),
    ("La garantía no cubre las baterías.", "La garantía cubre las baterías.", "denial"),
    ("La garanzia non copre le batterie.", "La garanzia copre le batterie.", "denial"),
    ("Seit gestern wird alles von Clara Novak geleitet.", "Seit gestern wird alles von Anna Stein geleitet.", "name"),
    ("The secret of row 7777 is 7757.", ROWS, "amount"),
    ("第7777行的密码是7757。", ROWS_ZH, "amount"),
    ("The table is 2.6 m long.", "The table is 250 cm long.", "amount"),
    ("The warranty lasts twelve months.", "The warranty lasts one week.", "amount"),
]
TRUE = [
    ("The secret of row 7777 is 7794.", ROWS),
    ("第7777行的密码是7794。", ROWS_ZH),
    ("In 2020 the revenue was 5 million.", "In 2020 the revenue was 4 million, and in 2020 all told it was 5 million."),
    (
        "Room 12 has 5 chairs.",
        "Room 12 has 4 chairs, says the plan. In truth 5 chairs stand in room 12. Room 13 has 5 chairs.",
    ),
    ("The current version is 2.1.", "The current version is 2.1, released in May."),
    ("The current version is 2.0.", "The current version is 2, released in May."),
    ("The fee is 2.10 euros a day.", "The fee is 2.1 euros a day."),
    ("The ratio rose to 2.10 in that test.", "In that test the ratio rose to 2.1."),
    ("Python 3.10 is needed for the program.", "The program needs python 3.10 or later."),
    ("Germany has its capital in Berlin.", "Berlin is the capital of Germany."),
    ("It is the old capital of Germany.", "Berlin is the old capital of Germany."),
    ("Automobiles are dear to buy in Ellison.", "Cars are dear to buy in Ellison."),
    ("Die Garantie gilt nicht für Akkus.", "Für Akkus gilt die Garantie nicht."),
    ("Die Garantie gilt nicht nur für Akkus.", "Die Garantie gilt für Akkus und für Ladegeräte."),
    ("La garantie couvre les batteries.", "La garantie couvre les batteries, pas seulement le moteur."),
    ("The table is 250 cm long.", "The table is 2.5 m long."),
    ("The table is 2.5 m long.", "The table is 250 cm long."),
    ("The warranty lasts twelve months.", "The warranty lasts one year."),
    ("The warranty lasts 12 months.", "The warranty lasts for a year."),
    ("Paint dries for 30 minutes.", "Paint dries for half an hour."),
    ("The house cost 500,000 dollars.", "The house cost half a million dollars."),
    ("Half of the members pay, which is 50 % of them.", "Half of the members pay, and the others do not."),
    ("The tubes are 50 feet (15 m) long.", "The tubes are 50 feet long."),
    ("1.5 million people live in Ellison today.", "Today 1.5 million people live in Ellison."),
    ("Jack Stone leads Barings Bank PLC in Ellison.", "Jack Stone leads Barings Bank from Ellison."),
    ("Ann Lee meets Trey MacDougal in Ellison.", "In Ellison Ann Lee meets Trey McDougall."),
    ("The tour began in Spring 2008 in Ellison.", "The tour began in April 2008 in Ellison."),
    ("Shots were fired by ISIL in Ellison.", "In Ellison ISIS fired shots."),
    ("The CIA keeps prisons in Ellison.", "Prisons in Ellison are kept by the Central Intelligence Agency."),
    ("A team of the U.S. CDC boarded the ship.", "A team of the U.S. Centers for Disease Control boarded the ship."),
    ("CVS will not sell these caplets any longer.", "CVS will stop selling these caplets and pull them."),
    ("Fifty people were killed on July 7.", "He had nothing to do with the July 7 attacks, which killed fifty people."),
    ("Herr Maier hatte einen Unfall in Ellison.", "Herr Maier verunglückte in Ellison."),
    ("Die Stadt hat in Ellison viele Einwohner.", "In Ellison leben viele Menschen."),
    ("The fund lost 850 million on its loans.", "The fund lost 850m on its loans."),
]


@pytest.mark.parametrize(("said", "passage", "kind"), FALSE)
def test_what_is_told_otherwise_is_found(said: str, passage: str, kind: str) -> None:
    (claim,) = check_claims(said, [passage])
    assert claim.verdict == "unsupported"
    assert [one.kind for one in claim.reasons] == [kind]


@pytest.mark.parametrize(("said", "passage"), TRUE)
def test_what_is_told_in_another_way_is_not_called_false(said: str, passage: str) -> None:
    assert [one.reasons for one in check_claims(said, [passage])] == [()]
