"""Fifty types asked of the built-in model: `python -m bench.schemas [name of weights …] [--show]`.

Each case is a short text and a type. Counted is how many answers fit their type at the first writing and after the
model was told its slips, and how many hold the values that the text holds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AnyUrl, BaseModel, Field, IPvAnyAddress
from typing_extensions import TypedDict

from bench.figures import Figure, report
from core import Assistant
from core.agents.output import OutputError
from core.llm.weights_catalog import DEFAULT, WEIGHTS

LARGER = "qwen2.5-coder-1.5b"


class Colour(StrEnum):
    """A colour."""

    RED = "red"
    GREEN = "green"
    BLUE = "blue"


class Person(BaseModel):
    """A person."""

    name: str
    age: int = Field(ge=0, le=130)


class Address(BaseModel):
    """An address."""

    street: str
    city: str
    postcode: str = Field(pattern=r"^[0-9]{5}$")


class Customer(BaseModel):
    """A customer."""

    name: str
    address: Address
    phone: str | None = None


class Line(BaseModel):
    """A line."""

    article: str
    count: int = Field(gt=0)
    price: Decimal


class Invoice(BaseModel):
    """An invoice."""

    number: str
    day: date
    lines: list[Line] = Field(min_length=1)
    total: float = Field(gt=0)


class Node(BaseModel):
    """A node."""

    name: str
    children: list[Node] = []


class Circle(BaseModel):
    """A circle."""

    kind: Literal["circle"]
    radius: float


class Square(BaseModel):
    """A square."""

    kind: Literal["square"]
    side: float


class Shape(BaseModel):
    """A shape."""

    shape: Annotated[Circle | Square, Field(discriminator="kind")]


class Meeting(BaseModel):
    """A meeting."""

    title: str
    begins: datetime
    minutes: int = Field(ge=5, le=480)
    people: list[str]


class Weather(BaseModel):
    """A weather."""

    place: str
    celsius: float
    rain: bool


class Review(BaseModel):
    """A review."""

    stars: int = Field(ge=1, le=5)
    mood: Literal["good", "bad", "mixed"]


class Ticket(BaseModel):
    """A ticket."""

    kind: Literal["bug", "wish", "question"]
    urgent: bool
    summary: str = Field(max_length=200)


class Recipe(BaseModel):
    """A recipe."""

    name: str
    minutes: int
    ingredients: dict[str, str]


class Book(BaseModel):
    """A book."""

    title: str
    author: str
    year: int = Field(ge=1000, le=2100)
    languages: set[str] = Field(min_length=1)


class Range(BaseModel):
    """A range."""

    low: float
    high: float


class Server(BaseModel):
    """A server."""

    host: IPvAnyAddress
    port: int = Field(ge=1, le=65535)
    page: AnyUrl


class Device(BaseModel):
    """A device."""

    id: UUID
    name: str


class Train(BaseModel):
    """A train."""

    leaves: clock
    arrives: clock
    platform: int


class Flight(TypedDict):
    """A flight."""

    number: str
    origin: str
    target: str


@dataclass
class Box:
    """A box, in centimetres."""

    width: int
    height: int
    depth: int


class Team(BaseModel):
    """A team."""

    name: str
    lead: Person
    members: list[Person]


class Step(BaseModel):
    """A step."""

    order: int
    action: str


class Plan(BaseModel):
    """A plan."""

    goal: str
    steps: list[Step] = Field(min_length=2, max_length=6)


class Money(BaseModel):
    """A money."""

    amount: Decimal = Field(max_digits=10, decimal_places=2)
    currency: Literal["EUR", "USD", "CNY"]


class Contract(BaseModel):
    """A contract."""

    parties: tuple[str, str]
    ends: date
    notice: int = Field(description="months of notice")


class Question(BaseModel):
    """A question."""

    text: str
    options: list[str] = Field(min_length=3, max_length=3)
    right: int = Field(ge=0, le=2)


class Film(BaseModel):
    """A film."""

    title: str = Field(alias="filmTitle")
    year: int


def table(name: str, colour: Colour, legs: int) -> tuple[str, str, int]:
    """A table.

    Args:
        name: What it is called.
        colour: Its colour.
        legs: How many legs it has.
    """
    return name, str(colour), legs


CASES: Sequence[tuple[Any, str, Sequence[str]]] = (
    (Person, "Anna Meier is 34 years old.", ("Anna", "34")),
    (Person, "李明今年二十八岁（28）。", ("李明", "28")),
    (list[Person], "Bob is 12 and his sister Eve is 15.", ("Bob", "12", "Eve", "15")),
    (Person | None, "Tom is 40.", ("Tom", "40")),
    (Address, "She lives at Lindenweg 4 in 50667 Köln.", ("Lindenweg 4", "50667", "Köln")),
    (Customer, "Customer Jan Vos, Hoofdstraat 7, 12345 Utrecht, no phone.", ("Jan Vos", "Utrecht", "12345")),
    (Customer, "Customer Ida Lund, Storgata 1, 54321 Oslo, phone 22 33 44.", ("Ida Lund", "54321", "22 33 44")),
    (Invoice, "Invoice A-17 of 3 May 2026: 2 chairs at 40.00, total 80.00.", ("A-17", "2026-05-03", "80")),
    (Invoice, "发票 B-5，2026年1月9日：茶叶 3 件，每件 20.50，合计 61.50。", ("B-5", "2026-01-09", "61.5")),
    (list[Line], "Order: 3 pens at 1.20 and 1 lamp at 25.", ("pen", "3", "lamp", "25")),
    (Node, "The root 'animals' has the children 'birds' and 'fish'.", ("animals", "birds", "fish")),
    (Shape, "A circle with a radius of 2.5.", ("circle", "2.5")),
    (Shape, "A square whose side is 4.", ("square", "4")),
    (Circle | Square, "A square with sides of 9.", ("square", "9")),
    (Meeting, "Budget talk on 4 June 2026 at 14:30 for 45 minutes with Kim and Lee.", ("2026-06-04", "45", "Kim")),
    (Weather, "In Bergen it is 8.5 degrees and it rains.", ("Bergen", "8.5", "true")),
    (Weather, "Madrid: 31 degrees, dry, no rain.", ("Madrid", "31", "false")),
    (Review, "Great food, friendly people, we come again! Five stars.", ("5", "good")),
    (Review, "Cold soup and a rude waiter. One star.", ("1", "bad")),
    (Literal["good", "bad", "mixed"], "The film was dreadful from start to end.", ("bad",)),
    (Ticket, "The program crashes when I save! I need this today, it is urgent.", ("bug", "true")),
    (Ticket, "It would be nice to have a dark theme one day. Not urgent.", ("wish", "false")),
    (Recipe, "Pancakes, 20 minutes: flour 200 g, milk 300 ml.", ("ancakes", "20", "200 g", "300 ml")),
    (Book, "'Faust' by Goethe, 1808, in German.", ("Faust", "Goethe", "1808", "German")),
    (Range, "Between 3.5 and 7 percent.", ("3.5", "7")),
    (Server, "It runs on 10.0.0.7, port 8080, page https://example.org/a.", ("10.0.0.7", "8080", "example.org")),
    (Device, "Printer, id 12345678-1234-5678-1234-567812345678.", ("12345678-1234-5678-1234-567812345678",)),
    (Train, "It leaves at 09:15, arrives at 11:40, platform 6.", ("09:15", "11:40", "6")),
    (Flight, "Flight LH 400 from Frankfurt to New York.", ("400", "Frankfurt", "New York")),
    (Box, "A box of 30 by 20 by 10 cm (width, height, depth).", ("30", "20", "10")),
    (Team, "Team Blue, led by Mia (41), with Max (25) and Zoe (29).", ("Blue", "Mia", "Max", "Zoe")),
    (Plan, "Goal: make tea. First boil water, then pour it over the leaves, then wait.", ("tea", "boil")),
    (Money, "It costs 19.99 euros.", ("19.99", "EUR")),
    (Money, "价格是 88.00 元人民币。", ("88", "CNY")),
    (Contract, "Contract of Acme and Globex until 31 December 2027, notice of 3 months.", ("2027-12-31", "Acme", "3")),
    (Question, "Quiz: The capital of Italy? Paris, Rome, Madrid.", ("Paris", "Rome", "Madrid")),
    (Film, "The film Metropolis is of 1927.", ("Metropolis", "1927")),
    (Colour, "The sky on a clear day.", ("blue",)),
    (list[Colour], "A flag of red and green.", ("red", "green")),
    (bool, "Is 7 a prime number? Yes, it is.", ("true",)),
    (int, "There are twelve (12) eggs in the box.", ("12",)),
    (float, "Pi is about 3.14.", ("3.14",)),
    (date, "The wall fell on 9 November 1989.", ("1989-11-09",)),
    (list[str], "Fruit: apple, pear, plum.", ("apple", "pear", "plum")),
    (list[int], "The numbers 4, 8 and 15.", ("4", "8", "15")),
    (dict[str, int], "Points: Ann 3, Ben 5.", ("Ann", "3", "Ben", "5")),
    (tuple[str, int], "Lisbon has 545000 people.", ("Lisbon", "545000")),
    (timedelta, "The walk takes two hours (PT2H).", ("2:00:00", "PT2H")),
    (dict[str, list[str]], "Europe: France, Spain. Asia: Japan.", ("France", "Spain", "Japan")),
    (table, "The table Oslo is green and has 4 legs.", ("Oslo", "green", "4")),
)


def written(value: object) -> str:
    """A value as JSON, or as Python writes it where it has no model."""
    if isinstance(value, BaseModel):
        return value.model_dump_json(by_alias=True)
    if isinstance(value, list | tuple):
        return " ".join(written(one) for one in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def holds(value: object, wanted: Iterable[str]) -> bool:
    """Whether what the text says stands in the value; of a duration one way to write it is enough."""
    text = written(value)
    found = [one.casefold() in text.casefold() for one in wanted]
    return any(found) if isinstance(value, timedelta) else all(found)


def measure(name: str, *, show: bool) -> list[Figure]:
    """Ask one model for each type."""
    agent = Assistant(llm={"model_type": "llama_cpp", "model": name, "generate_cfg": {"temperature": 0}})
    valid = first = right = 0
    started = time.process_time()
    for kind, text, wanted in CASES:
        try:
            reply = agent.ask(f"Take the data out of this text: {text}", output_type=kind)
        except OutputError as error:
            print(f"NO  {text} → {error}", file=sys.stderr)
            continue
        valid += 1
        first += sum(entry.event.kind == "message_finished" for entry in reply.log) == 1
        fits = holds(reply.output, wanted)
        right += fits
        if show or not fits:
            print(f"{'    ' if fits else 'BUT '}{text} → {written(reply.output)}", file=sys.stderr)
    seconds = (time.process_time() - started) / len(CASES)
    called, count = f"{WEIGHTS[name].label}, built in", len(CASES)
    rest = f"{seconds:.1f} s of CPU each"
    return [
        Figure(f"{called}: {count} types, valid", valid / count, 0.98, "", rest, at_least=True),
        Figure(f"{called}: valid as first written", first / count, 0.9, "", "held by a grammar", at_least=True),
        Figure(f"{called}: with the values of the text", right / count, 0.6, "", "", at_least=True),
    ]


def main(arguments: Sequence[str]) -> None:
    """Measure the models that are named, else both built-in ones."""
    names = [one for one in arguments if not one.startswith("-")] or [DEFAULT, LARGER]
    for name in names:
        report(measure(name, show="--show" in arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
