"""What people put around a question: greetings, courtesies, "I would like to know". None of it changes the answer."""

from __future__ import annotations

import re

from retrieval.answers.facts.types import Kind, Token

_ASKED = r"(?:tell|show|give|teach|inform|remind|advise|help|let)(?: to)? (?:me|us)(?: know)?(?: about)?"
_EXPLAINED = r"(?:explain|describe|clarify)(?: to)?(?: (?:me|us))?(?: about)?"
_GREETING = (
    r"(?:(?:hi|hello|hey|dear)(?: (?:there|all|team|everyone|folks))?|please|pls|plz|kindly|thanks|thank you|ok|okay|"
    r"so|well|um|uh|er|excuse me|sorry|good (?:morning|afternoon|evening|day)|quick question|just curious|"
    r"out of curiosity)"
)
_EMBEDDED = r"(?:if|whether|how|what|why|when|where|who|which)"
_REQUEST = (
    r"(?:can|could|would|will) (?:you|u|someone|anyone|somebody|anybody)(?: be (?:so kind as|kind enough|able) to)?"
    rf"(?: (?:please|kindly|possibly|just|quickly))*(?: help me (?:understand|find out)| {_ASKED}| {_EXPLAINED})"
)
_WISH = (
    r"(?:i|we) (?:would|should)?(?: ?(?:really|just|also))* ?(?:like|love|want|need|wish|have|"
    r"be (?:happy|grateful|glad))(?: you)? to (?:(?:know|ask(?: you)?|find out|be told|tell (?:me|us))(?: about)?|"
    rf"(?:learn|understand|hear|see|check)(?= (?:about|{_EMBEDDED}) )(?: about)?)"
)
_WONDER = (
    r"(?:i|we) (?:am|are|was|were|have been)(?: (?:just|really|also))* (?:wondering|curious|asking|"
    r"interested(?: in knowing)?|trying to (?:find out|understand|figure out|know|work out)|"
    r"looking to (?:know|find out))(?: (?:about|to know|as to))?"
)
_OPENINGS = (
    _GREETING,
    _REQUEST,
    _WISH,
    _WONDER,
    _ASKED,
    rf"explain(?= {_EMBEDDED} )",
    rf"(?:i|we) (?:do not|would not) know(?= {_EMBEDDED} )",
    r"(?:if you (?:do not|would not|could) mind|if possible|if you can|if i may ask|by the way)",
    r"(?:would|do) you mind (?:telling|showing|explaining|giving|letting)(?: (?:to )?(?:me|us))?(?: know)?(?: about)?",
    r"(?:can|could|may|might) (?:i|we)(?: (?:please|kindly|possibly|just))* (?:know|ask(?: you)?)(?: about)?",
    r"(?:do|does|would) (?:you|anyone|anybody|someone|any of you)(?: (?:happen to|possibly))? know(?: of| about)?",
    r"(?:i|we) (?:wonder|wondered)(?: about)?",
    r"what (?:i|we) (?:want|need|would like) to know is",
    r"(?:my|the|one|here is my|i have a)(?: quick| short| simple)? question (?:is|here|for you)",
    r"(?:any|got any|have you any) idea(?: of| about)?",
    r"it would be (?:nice|great|good|helpful|kind) (?:if you could|to know)(?: tell(?: me| us)?)?(?: about)?",
    r"i would (?:appreciate it if you|be (?:grateful|happy|glad) if you)(?: could| would)? tell (?:me|us)(?: about)?",
)
_OPENING = re.compile(rf"(?:(?:{'|'.join(_OPENINGS)}) )(?:, |: |! |\. |; )*")
_CLOSING = re.compile(
    r" (?:, |\. |[?!]+ )*(?:please|pls|plz|kindly|thanks|thank you|thx|cheers|"
    r"thanks (?:a lot|so much|in advance|very much)|thank you (?:very much|so much|in advance)|many thanks|"
    r"if you (?:do not|would not) mind|if possible|if you can|if you know|by any chance|do you know|"
    r"can you (?:tell|help) (?:me|us)|would you know|exactly)(?: [?.!,]+)*$"
)
_ANYONE = r"(?:i|we|you|one|someone|anyone|people|a person)"
_HOW_TO = re.compile(
    r"(?:(?:what|which) (?:is|are) )?(?:(?:the|some|a|any|your) )*"
    r"(?:(?:best|good|right|proper|correct|possible|effective|recommended) )?"
    r"(?:ways?|methods?|steps|procedures?) (?:to|of|for) "
    rf"|(?:what|which things?) (?:should|can|could|do|must|would|may) {_ANYONE}(?: (?:have|need) to)? do"
    r"(?: in order)? to "
    rf"|how (?:to|can|could|do|does|should|would|may|might) (?:{_ANYONE} )?(?:go about |best )?"
    r"|how (?:am|are) (?:i|you|we) (?:supposed|able) to "
)
_POLAR = re.compile(r"(?:if|whether) ")
_REASON = re.compile(
    r"(?:what (?:is|are|was|were) the reasons? (?:for|why|that|behind|of)|how come|what (?:makes|made)) "
)
_LONGEST_FRAME = 24
_MOST_FRAMES = 6


def without_frames(tokens: list[Token]) -> list[Token]:
    """Returns the tokens without courtesies, with the question's opening in one form of several that mean the same."""
    opened = _without_opening(tokens)
    return _levelled_opening(_without_closing(opened) or opened)


def _without_opening(tokens: list[Token]) -> list[Token]:
    for _ in range(_MOST_FRAMES):
        found = _OPENING.match(_joined(tokens[:_LONGEST_FRAME]))
        taken = found.group().count(" ") if found else 0
        if not taken or taken >= len(tokens) or all(token.kind is Kind.STOP for token in tokens[taken:]):
            return tokens
        tokens = tokens[taken:]
    return tokens


def _without_closing(tokens: list[Token]) -> list[Token]:
    for _ in range(_MOST_FRAMES):
        found = _CLOSING.search(_joined(tokens[-_LONGEST_FRAME:]).rstrip(" "))
        taken = len(found.group().split()) if found else 0
        if not taken or taken >= len(tokens):
            return tokens
        tokens = tokens[:-taken]
    return tokens


def _levelled_opening(tokens: list[Token]) -> list[Token]:
    """Levels the opening; where a phrase stands before it ("In Perl, how do I ..."), what follows the first comma."""
    start = next((place for place, token in enumerate(tokens[:_LONGEST_FRAME]) if token.kind is Kind.COMMA), -1) + 1
    for head in dict.fromkeys((0, start)):
        joined = _joined(tokens[head : head + _LONGEST_FRAME])
        for pattern, opening in ((_HOW_TO, "how-to"), (_REASON, "why"), (_POLAR, "whether")):
            if (found := pattern.match(joined)) and (head == 0 or opening != "whether"):
                rest = tokens[head + found.group().count(" ") :]
                return [*tokens[:head], Token(opening, opening, Kind.WORD), *rest]
    return tokens


def _joined(tokens: list[Token]) -> str:
    """The tokens' texts, a space after each: a match's spaces count its tokens."""
    return "".join(f"{token.text.replace(' ', '_')} " for token in tokens)
