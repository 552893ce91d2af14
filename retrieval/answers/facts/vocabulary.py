"""The words of English that the guard knows by what they do in a question.

Whatever is in none of these lists is taken for a name: both questions must have it. So a missing word costs a hit,
never a wrong answer.
"""

from __future__ import annotations

QUESTION_WORDS = {
    "what": "what", "which": "what", "who": "who", "whom": "who", "whose": "whose", "when": "when", "where": "where",
    "why": "why", "how": "how", "how-to": "how",
}  # fmt: skip
# After "how": what is measured.
MEASURES = frozenset(
    [
        "many",
        "much",
        "long",
        "often",
        "far",
        "old",
        "big",
        "large",
        "tall",
        "high",
        "deep",
        "fast",
        "quick",
        "quickly",
        "soon",
        "heavy",
        "hot",
        "cold",
        "wide",
        "thick",
        "small",
        "late",
        "early",
        "close",
        "accurate",
        "good",
        "safe",
        "well",
        "strong",
        "hard",
        "easy",
        "expensive",
        "likely",
        "important",
        "common",
    ]
)
DO = frozenset(["do", "does", "did"])
BE = frozenset(["is", "are", "was", "were", "be", "am", "being", "been"])
HAVE = frozenset(["has", "have", "had", "having"])
AUXILIARIES = DO | BE | HAVE
PAST = frozenset(["was", "were", "did", "had"])
FUTURE = frozenset({"will", "shall"})
MODALS = {
    "can": "can", "could": "can", "able": "can", "should": "should", "ought": "should", "must": "must", "need": "need",
    "may": "may", "might": "may", "would": "would", "will": "will", "shall": "should",
}  # fmt: skip
DROPPED = frozenset(
    [
        "the",
        "a",
        "an",
        "this",
        "that",
        "these",
        "those",
        "it",
        "its",
        "there",
        "here",
        "some",
        "any",
        "just",
        "really",
        "actually",
        "basically",
        "exactly",
        "please",
        "kindly",
        "also",
        "then",
        "so",
        "very",
        "quite",
        "ever",
        "one",
        "and",
        "or",
        "vs",
        "versus",
        "&",
        "got",
        "get",
        "gets",
        "getting",
        "do",
        "done",
        "else",
        "etc",
        "such",
        "as",
        "own",
        "us",
        "let",
        "lets",
        "going",
        "one's",
        "thing",
        "things",
        "currently",
        "right",
        "precisely",
        "specifically",
        "simply",
        "possibly",
        "nowadays",
        "way",
        "ways",
        "have",
        "to",
    ]
)
ARTICLES = frozenset(
    [
        "the",
        "a",
        "an",
        "this",
        "that",
        "these",
        "those",
        "my",
        "your",
        "his",
        "her",
        "its",
        "our",
        "their",
        "some",
        "any",
        "every",
        "each",
    ]
)
PERSONS = {
    "i": "i", "me": "i", "my": "i", "mine": "i", "myself": "i", "we": "i", "our": "i", "ours": "i", "us": "i",
    "you": "you", "your": "you", "yours": "you", "yourself": "you", "he": "he", "him": "he", "his": "he",
    "she": "she", "her": "she", "hers": "she", "they": "they", "them": "they", "their": "they", "theirs": "they",
}  # fmt: skip
NEGATIONS = frozenset(
    [
        "not",
        "no",
        "never",
        "without",
        "except",
        "nor",
        "neither",
        "none",
        "nobody",
        "nothing",
        "nowhere",
        "hardly",
        "barely",
        "excluding",
        "unless",
        "lack",
        "lacks",
        "lacking",
        "fail",
        "fails",
        "failed",
        "failing",
        "avoid",
        "avoids",
        "avoiding",
        "prevent",
        "prevents",
        "stop",
        "stops",
        "minus",
        "refuse",
    ]
)
# Under these a word may stand or not, as long as the order of words is the same.
WEAK_PREPOSITIONS = {
    "in": "in", "on": "in", "at": "in", "upon": "in", "inside": "in", "within": "in", "during": "in", "throughout": "in",
    "about": "about", "regarding": "about", "concerning": "about", "for": "for", "with": "with", "using": "with",
    "as": "as", "per": "per", "via": "with", "to": "to", "into": "to", "onto": "to", "between": "between",
    "among": "between", "towards": "to", "toward": "to", "along": "with",
}  # fmt: skip
# These turn the meaning, whatever stands under them.
STRONG_PREPOSITIONS = {
    "from": "from", "before": "before", "prior": "before", "after": "after", "since": "since", "until": "until",
    "till": "until", "above": "above", "over": "over", "under": "under", "underneath": "under", "below": "below",
    "beneath": "below", "beyond": "beyond", "against": "against", "than": "than", "up": "up", "down": "down",
    "off": "off", "out": "out", "away": "away", "back": "back", "through": "through", "across": "across",
    "behind": "behind", "outside": "outside", "by": "by", "like": "like", "unlike": "unlike", "despite": "despite",
    "near": "near", "instead": "instead", "besides": "besides", "if": "if", "while": "while", "because": "because",
    "but": "but",
}  # fmt: skip
JOINTS = WEAK_PREPOSITIONS.keys() | STRONG_PREPOSITIONS.keys() | AUXILIARIES | DROPPED | NEGATIONS | {"of"}
# Words of grammar that are names when written in capitals.
ACRONYMS = frozenset("who it us am me he as".split())
# What these deny tells two questions apart: "open but not locked".
SCOPED_NEGATIONS = frozenset("not without except excluding unless minus stop neither nor".split())
NUMBER_WORDS = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
TENS = {
    word: value
    for value, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2)
}  # fmt: skip
MULTIPLIERS = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ORDINALS = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
]

# Quantifiers, superlatives and words with an opposite: both questions must have the same ones.
_STRICT_GROUPS = """
all every each entire whole everyone everybody everything always
most mostly majority
many lots
few fewer
more greater
less lesser
least
only solely exclusively
both
either
half
double twice
once
several
enough sufficient
first initial initially 1th
last final finally ultimately
next following subsequent
previous preceding former
latest newest recent
earliest oldest
current present
future
past
old older
new newer
maximum max highest maximal
minimum min lowest minimal
biggest largest
smallest tiniest
longest
shortest
fastest quickest
slowest
cheapest
dearest costliest priciest
strongest
weakest
nearest closest
farthest furthest
better
worst worse
top
bottom
upper
lower
increase raise grow gain rise boost
decrease reduce lower decline shrink fall drop lessen
enable activate
disable deactivate
allow permit enabled
forbid prohibit deny block ban
start begin commence
end finish complete
open
close shut
lock
unlock
connect attach
disconnect detach
install
uninstall
import
export
upload
download
push
pull
send
receive
buy purchase
sell
lend
borrow
win
lose
encrypt encode
decrypt decode
compress zip
decompress unzip extract
read
write
add
remove delete erase
insert
subtract
multiply
divide
input
output
inbound incoming
outbound outgoing
internal
external
public
private
left
right-hand
north
south
east
west
true
false
valid
invalid
legal
illegal
possible
impossible
safe
unsafe dangerous
positive
negative
male
female
hot
cold
heat warm
cool
pass
passed
accept approve
reject decline
success succeed successful
failure
advantage benefit pro pros upside
disadvantage drawback con cons downside
same equal identical
different unequal
exceed
minimise minimize
maximise maximize
upgrade
downgrade
online
offline
local
remote
client
server
parent
child
winter
summer
day
night
morning
evening
buyer
seller
employer
employee
teacher
student
sender
receiver recipient
source
destination target
cause
effect consequence
ascending
descending
horizontal
vertical
inner
outer
major
minor
manual manually
automatic automatically
optional
mandatory required compulsory
include included
exclude excluded
daily
weekly
monthly
yearly annual annually
hourly
today
yesterday
tomorrow
now
later
earlier
early
late
forward
backward
upstream
downstream
clockwise
anticlockwise counterclockwise
rich
poor
young
high
low
long
short
fast quick quickly rapidly
slow slowly
hard difficult tough
easy simple easily
strong
weak
big large
small little
good great nice best greatest
bad poor
cheap inexpensive affordable
expensive costly
healthy
unhealthy
love
hate
male
ignore skip
"""


def _strict_words() -> dict[str, str]:
    strict = {word: group.split()[0] for group in _STRICT_GROUPS.strip().splitlines() for word in group.split()}
    ordinals = {f"{number}th": word for number, word in enumerate(_ORDINALS, start=1)}
    return strict | ordinals | {word: word for word in _ORDINALS}


STRICT = _strict_words()
ALIKE_NEGATIONS = {
    "no": "not", "never": "not", "lacks": "lack", "lacking": "lack", "fails": "fail", "failed": "fail",
    "failing": "fail", "avoid": "stop", "avoids": "stop", "avoiding": "stop", "prevent": "stop", "prevents": "stop",
    "stops": "stop",
}  # fmt: skip
# Adverbs may stand anywhere in a sentence; so may these.
FLOATING = frozenset(
    [
        "online",
        "offline",
        "now",
        "today",
        "yesterday",
        "tomorrow",
        "daily",
        "weekly",
        "monthly",
        "yearly",
        "early",
        "late",
    ]
)
NO_ADVERBS = frozenset(
    ["family", "supply", "reply", "apply", "assembly", "monopoly", "butterfly", "multiply", "anomaly", "italy"]
)
# Irregular participles: after "is" they make a passive.
PARTICIPLES = frozenset(
    [
        "built",
        "sent",
        "paid",
        "led",
        "held",
        "told",
        "sold",
        "taught",
        "bought",
        "found",
        "left",
        "lost",
        "kept",
        "won",
        "shot",
        "hit",
        "made",
        "caught",
        "done",
        "put",
        "set",
        "cut",
        "read",
        "known",
        "shown",
        "grown",
        "thrown",
        "drawn",
        "born",
        "worn",
        "torn",
        "sung",
        "bound",
        "fed",
        "met",
        "said",
        "spent",
        "understood",
    ]
)
SORTS = frozenset(
    ["type", "types", "kind", "kinds", "sort", "sorts", "form", "forms", "method", "methods", "category", "categories"]
)
# Of these words, the ones that a question worded differently may bring in or leave out.
MILD_TURNS = frozenset(
    f"!{word}"
    for word in (
        "good easy possible many more most different now today new start big small write read love advantage cause effect "
        "hard fast young old high low long short buy online student open send current future true true success better top"
    ).split()
)
# Of prepositions and joints, the ones that must agree however the questions are worded.
DECISIVE = frozenset(
    "from before after since until above over under below beyond against than off out down or but unlike instead".split()
)
NEGATIVE_PREFIXES = (
    "un",
    "in",
    "im",
    "ir",
    "il",
    "dis",
    "non",
    "de",
    "anti",
    "mis",
    "re",
    "pre",
    "post",
    "over",
    "under",
)
