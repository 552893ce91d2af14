"""What the simulated collections say, and how it is asked for.

A document states one figure of one part at one site, and no figure is ever used twice, so an answer that quotes one
tells whose it is and which version of which document it was read from. Questions are worded in several ways: two that
are equal after normalisation, and some that mean the same in other words.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from indexers.types import Document, FieldType

FIELDS = {"site": FieldType.KEYWORD}
SITES = ("north", "south")
FIGURES = ("torque", "pressure", "voltage", "weight")
PARTS = ("pump", "valve", "rotor", "bearing")
WORDINGS = (
    "What is the {figure} of the {part}?",
    "what is  the {figure} of the {part}",
    "Could you tell me the {figure} of the {part}?",
    "Please tell me what the {figure} of the {part} is.",
    "What's the {part}'s {figure}?",
)
NOISE = (
    Document(
        "noise-0", "Canteen", "The canteen opens at noon and closes in the afternoon.", metadata={"site": "north"}
    ),
    Document("noise-1", "Parking", "Bicycles are parked behind the main hall.", metadata={"site": "south"}),
    Document("noise-2", "Badges", "A lost badge is reported to the front desk.", metadata={"site": "north"}),
)
"""The same in all collections of all tenants, ids and words alike."""


@dataclass(frozen=True, slots=True, order=True)
class Topic:
    """A figure of a part."""

    figure: str
    part: str

    @property
    def phrase(self) -> str:
        """How documents name it."""
        return f"{self.figure} of the {self.part}"

    def question(self, wording: int) -> str:
        """Returns the question in one of the wordings."""
        return WORDINGS[wording].format(figure=self.figure, part=self.part)


TOPICS = tuple(Topic(figure, part) for figure in FIGURES for part in PARTS)


def topic_of(question: str) -> Topic:
    """Returns what a question asks for."""
    words = question.lower().replace("'s", "").replace("?", "").replace(".", "").split()
    [figure], [part] = [one for one in FIGURES if one in words], [one for one in PARTS if one in words]
    return Topic(figure, part)


class Values:
    """Gives out figures that nobody else has."""

    def __init__(self) -> None:
        self._numbers = count(10_001)

    def next(self) -> int:
        """Returns a figure that was never given out."""
        return next(self._numbers)


def fact_document(document_id: str, topic: Topic, site: str, value: int, sheet: int) -> Document:
    """Returns a document that states the figure; its title is a part of what it says."""
    text = f"The {topic.phrase} is {value} units. It was measured on the bench."
    return Document(document_id, title_of(sheet), text, metadata={"site": site})


def title_of(sheet: int) -> str:
    """Returns the title of a document."""
    return f"Sheet {sheet}"


def statement(title: str, text: str) -> str:
    """Returns what a document says, as answers put it."""
    return f"{text.partition('. ')[0]} by {title}."
