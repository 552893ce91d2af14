"""The words of English grammar that the guard knows by what they do in a question.

Whatever is in none of these lists, nor in those of `turns` and `ordinary`, is taken for a name: both questions must
have it. So a word that is missing here costs a hit, never a wrong answer.
"""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Returns the words of a text."""
    return frozenset(text.split())


def word_map(text: str) -> dict[str, str]:
    """Reads `meaning: word word; meaning: word`, and returns each word's meaning."""
    groups = (group.split(":") for group in text.split(";"))
    return {word: meaning.strip() for meaning, words in groups for word in words.split()}


QUESTION_WORDS = word_map(
    """
    what: what which; who: who whom; whose: whose; when: when; where: where; why: why; how: how how-to
    """
)
# After "how": what is measured.
MEASURES = word_set(
    """
    accurate big close cold common deep early easy expensive far fast good hard heavy high hot important large
    late likely long many much often old quick quickly safe small soon strong tall thick well wide
    """
)
DO = word_set("did do does")
BE = word_set("am are be been being is was were")
HAVE = word_set("had has have having")
AUXILIARIES = DO | BE | HAVE
VERBS_TOO = word_set("do have")  # after a subject and another auxiliary
PAST = word_set("did had was were")
FUTURE = word_set("shall will")
MODALS = word_map(
    """
    can: can could able; should: should ought shall; must: must; need: need; may: may might; would: would; will:
    will
    """
)
# Words that say nothing by themselves.
DROPPED = word_set(
    """
    & a actually also an and any as basically currently do else etc ever exactly going have here it its just
    kindly let lets nowadays one one's or own please possibly precisely quite really right simply so some
    specifically such that the then there these thing things this those to us versus very vs way ways
    """
)
# Before these a noun phrase begins.
ARTICLES = word_set("a an any each every her his its my our some that the their these this those your")
PERSONS = word_map(
    """
    i: i me my mine myself we our ours us; you: you your yours yourself; he: he him his; she: she her hers; they:
    they them their theirs
    """
)
NEGATIONS = word_set(
    """
    avoid avoiding avoids barely except excluding fail failed failing fails hardly lack lacking lacks minus
    neither never no nobody none nor not nothing nowhere prevent prevents refuse stop stops unless without
    """
)
ALIKE_NEGATIONS = word_map(
    """
    not: no never without; lack: lacks lacking; fail: fails failed failing; stop: avoid avoids avoiding prevent prevents
    stops
    """
)
# What these deny tells two questions apart: "open but not locked".
SCOPED_NEGATIONS = word_set("except excluding minus neither nor not stop unless")
NEGATIVE_PREFIXES = word_set("anti de dis il im in ir mis non over post pre re un under")
# Under these a word may stand or not, as long as the order of words is the same.
WEAK_PREPOSITIONS = word_map(
    """
    in: in on at upon inside within during throughout; about: about regarding concerning according; for: for; with: with
    using via along; as: as; per: per; to: to into onto towards toward; between: between among
    """
)
# These turn the meaning, whatever stands under them.
STRONG_PREPOSITIONS = word_map(
    """
    from: from; before: before prior; after: after; since: since; until: until till; above: above; over: over;
    under: under underneath; below: below beneath; beyond: beyond; against: against; than: than; up: up; down:
    down; off: off; out: out; away: away; back: back; through: through; across: across; behind: behind; outside:
    outside; by: by; like: like; unlike: unlike; despite: despite; near: near; instead: instead; besides: besides;
    if: if; while: while; because: because; but: but
    """
)
# Of prepositions and joints, the ones that must agree however the questions are worded.
DECISIVE = word_set(
    """
    above after against before below beyond but down from instead off or out over since than under unlike until
    """
)
JOINTS = WEAK_PREPOSITIONS.keys() | STRONG_PREPOSITIONS.keys() | AUXILIARIES | DROPPED | NEGATIONS | {"of"}
# Words of grammar that are names when written in capitals.
ACRONYMS = word_set("am as he it me us who")
# Adverbs may stand anywhere in a sentence; so may these.
FLOATING = word_set("daily early late monthly now offline online today tomorrow weekly yearly yesterday")
# These end like adverbs.
NO_ADVERBS = word_set("anomaly apply assembly butterfly family italy monopoly multiply reply supply")
# Irregular participles: after "is" they make a passive.
PARTICIPLES = word_set(
    """
    born bought bound built caught cut done drawn fed found grown held hit kept known led left lost made met paid
    put read said sent set shot shown sold spent sung taught thrown told torn understood won worn
    """
)
# Before these, "different" says nothing.
SORTS = word_set("categories category form forms kind kinds method methods sort sorts type types")
