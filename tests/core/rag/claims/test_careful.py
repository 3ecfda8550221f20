"""What a writer may say without a passage that says it word for word is not called false; its false sisters are."""

from __future__ import annotations

import pytest

from core.rag.claims.check import check_claims

FINCH = "The director of the opera, Finch, opened the season in Leeds. Eighty guests came to the feast."
SUBS = "In the fog the Marlin and the Trident ran into each other. Neither of the submarines sank."
GERMAN = (
    "Die Werft hat zum Jahresende mehrere Handys für die Belegschaft bestellt. Das Lager liegt im Hafen von Emden, "
    "und die Leitung hat Karla Brandt, die seit dem Frühjahr dort ist."
)
TRUE = [
    # the surname stands there, and the first name nowhere
    ("Walter Finch opened the season of the opera in Leeds.", FINCH),
    ("Alan Finch opened the season in Leeds.", "Allan Finch opened the season in Leeds with a speech."),
    # a slip of the pen
    ("The Metroplitan Opera was closed for a week.", "For a week the Metropolitan Opera was closed."),
    ("The play was put on in Edinbrugh.", "They put the play on in Edinburgh, and it ran for weeks."),
    # a continent
    ("The plant grows in Africa.", "The plant grows in Kenya and in the north of Tanzania."),
    ("She worked as a nurse in Central Europe.", "She worked as a nurse in Prague, and later as a teacher."),
    # a title that is cut short
    ("Voters dismissed Gov Nora Pike in autumn.", "In autumn voters dismissed their governor, Nora Pike."),
    # one virus by its several names
    ("The clinic treats patients with COVID-19.", "The clinic treats patients who have the coronavirus."),
    # what is counted at a glance
    ("Two submarines ran into each other in the fog.", SUBS),
    ("They are the three colours of the flag.", "The colours of the flag are green, white and red."),
    ("He was the 1st mayor of the town.", "He was the first mayor of the town."),
    # two ordinals are two figures
    ("The poll was taken on the 6th and 7th of October.", "The poll was taken on the sixth and seventh of October."),
    # a word that is joined to a known one
    ("The Anglo-Irish treaty was signed in spring.", "In spring the British and the Irish signed a treaty."),
    ("An Afro-Cuban band played in the square.", "In the square a band from Cuba played for the guests."),
    # a decade, an age, and a century
    ("The man is in his 30s and has grey hair.", "The man has grey hair and is 36 years old."),
    ("She died in her 60s in a home.", "She was born in 1901, and died in 1965 in a home for the blind."),
    ("The bridge was built in the 80s.", "The bridge was built in 1987 by the state."),
    ("The bridge was built in the 80's.", "The bridge was built in 1987 by the state."),
    ("The crest dates back to the 1800s.", "The crest of the club was first drawn in 1888."),
    # more than that is what is told
    ("More than 130 people lost their lives there.", "The ferry sank there, and 135 people lost their lives."),
    ("The book is read in 250 or more languages.", "The book is read in 300 languages of the world."),
    # words for large numbers in the plural, and in other languages
    ("The state gave twenty-five millions for the film.", "For the film the state gave 25 million."),
    ("Die Firma kostet 390 Millionen Euro.", "Die Firma wird für 390 Millionen Euro verkauft, und das ist viel."),
    # money keeps its sign
    ("The firm earned US$42.78 mn in three months.", "For three months the firm earned US$42.78 mn in all."),
    # a word with a capital that begins a sentence is nobody
    ("Rennie founded the order of the Garden.", "Rennie came home. Later on he founded the order of the Garden."),
    ("Pamela won a prize for her novel.", "Pamela was glad. Even so, the prize that was won for the novel was small."),
    # who does it stands behind other words, or nowhere
    ("The market was closed down by a power failure.", "A power failure closed down the market for a day."),
    ("Barns were destroyed by the storm in Kent.", "The storm in Kent destroyed dozens of barns and a mill."),
    ("A member of the council was injured in a bomb attack.", "A bomb injured a member of the council in the attack."),
    # who else is spoken of beside is no opposite
    ("Piet is the son of Karl Vos.", "Karl Vos and his wife told us that Piet is the name of the boy."),
    ("The charges were denied by his family.", "His family has always denied the charges."),
    ("The shop will offer free repairs.", "Free repairs are not all that the shop will offer."),
    # a word of German is no name
    ("Die Belegschaft erhält Mobiltelefone.", GERMAN),
    ("Der Standort des Lagers ist der Hafen Emdens.", GERMAN),
    ("Karla Brandt übernahm die Geschicke der Werft.", GERMAN),
    # nor is what stands before a character that ends some names of places in Chinese
    ("他在公司上班。", "他每天早上坐车去那家小公司，晚上才回来。"),
    ("外贸出口对国内经济影响极大。", "由于外贸出口增长回落，对国内经济的影响非常大。"),
    ("农业和农村问题受到重视。", "各级政府非常重视农业问题，也重视农民问题。"),
    ("光热有限，这使它节省。", "光和热都是有限的，它只好细水长流。"),
]
FALSE = [
    ("Walter Finch opened the season in Leeds.", "Nora Finch opened the season in Leeds.", "name"),
    (
        "Walter Finch opened the season.",
        "The season began late. Nora Finch spoke, and Finch opened the season.",
        "name",
    ),
    ("The plant is sold in Asia.", "The plant is sold in Europe.", "name"),
    ("The plant grows in South Africa.", "The plant grows in Kenya and in the north of Tanzania.", "name"),
    ("The Boeing-747 landed in Leeds at noon.", "The Boeing-737 landed in Leeds at noon.", "amount"),
    ("Three submarines sank in the fog.", "Two submarines sank in the fog.", "amount"),
    ("The bridge was built in the 80s.", "The bridge was built in 1975 by the state.", "date"),
    ("More than 130 people lost their lives there.", "The ferry sank there, and 90 people lost their lives.", "amount"),
    ("The deductible is $750.", "The deductible is 750 euros.", "amount"),
    ("Die Filiale ist jetzt in Hamburg.", "Die Filiale ist jetzt in Berlin.", "name"),
    ("Der Hafen wird von Otto Kraft geleitet.", GERMAN, "name"),
    ("The dog was caught by the postman.", "The postman was caught by the dog.", "role"),
    ("张三是上海市市长。", "张三曾经在北京工作，后来当了市长。", "name"),
]


@pytest.mark.parametrize(("sentence", "text"), TRUE)
def test_what_no_passage_need_say_word_for_word_is_not_called_false(sentence: str, text: str) -> None:
    assert [one.reasons for one in check_claims(sentence, [text])] == [()]


@pytest.mark.parametrize(("sentence", "text", "kind"), FALSE)
def test_what_a_passage_says_otherwise_is_still_called_false(sentence: str, text: str, kind: str) -> None:
    (claim,) = check_claims(sentence, [text])
    assert (claim.verdict, claim.reasons[0].kind) == ("unsupported", kind)
