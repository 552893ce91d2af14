"""The words by which a question says that it goes on from what was said before.

English in full; of German, French and Spanish what is cheap and unlikely to mean anything else.
"""

from __future__ import annotations

from retrieval.answers.facts.tokens import POSSESSIVE
from retrieval.answers.facts.vocabulary import JOINTS, MODALS, PERSONS, QUESTION_WORDS, word_set

SUBJECTS = word_set("he she they")
OBJECTS = word_set("him them it")
POSSESSIVES = word_set("his her hers its their theirs himself herself itself themselves")
PERSONAL = word_set("he him his himself she her hers herself they them their theirs themselves")
DEMONSTRATIVES = word_set("this that these those")
POINTING = DEMONSTRATIVES | OBJECTS | word_set("more further again you me us")
# Before "that" these make it a pronoun; elsewhere it mostly opens a clause.
BEFORE_THAT = word_set(
    """
    of about than like after before for with by to from in on at do does did is was are were be mean why how when
    using via without
    """
)
# After "this" and "these", times of the speaker, which lie before nothing.
TIMES = word_set(
    "year years month months week weeks day days morning afternoon evening time weekend quarter century who"
)
# "It" before one of these, or before an adjective and "to", stands for nothing.
EMPTY_AFTER_IT = word_set("take takes took cost costs matter matters rain rains snow seem seems")
CLAUSE_OPENERS = word_set(
    "and or but so if when whenever while because since although unless that which who whose where before after "
    "until to"
)
CHOOSERS = word_set(
    "which first second third fourth fifth last next previous other another same former latter this that"
)
CHOSEN = word_set("former latter other others")
BOTH = word_set("both neither either")
# A question that opens with one of these and has no verb of its own goes on from the one before.
JOINING = word_set("and or but also so then ok okay well plus besides hm hmm alright")
# What one asks about an answer as a whole.
ABOUT_SPEECH = word_set(
    """
    clarify describe detail details elaborate example examples explain further give happen happened info information
    mean means more repeat say sense show summarise summarize tell understand work works
    """
)
MORE = word_set("more further else again another other others")
SMALL_TALK = word_set("thanks thank you ok okay hi hello . ! ,")
OPENINGS = tuple(
    tuple(opening.split())
    for opening in (
        "what about", "how about", "how come", "same for", "the same for", "same question", "same with", "what else",
        "who else", "where else", "anything else", "any others", "any other", "why not", "tell me more", "go on",
        "continue", "elaborate", "such as", "like what", "like which", "in that case", "for example",
        "give me an example",
        "an example", "another example", "any examples", "explain more", "explain further", "in which case",
        # German
        "und was ist mit", "was ist mit", "und wie ist es", "wie sieht es", "warum nicht", "zum beispiel", "und wenn",
        # French
        "et pour", "et si", "qu en est il", "et que", "par exemple", "pourquoi pas",
        # Spanish
        "y qué", "y si", "qué tal", "por ejemplo", "y para", "por qué no",
    )
)  # fmt: skip
FOREIGN_OPENERS = word_set("und oder aber et ou mais y o pero")  # no English question opens with one
FOREIGN_JOINING = FOREIGN_OPENERS | word_set("auch dann aussi alors donc también entonces")
FOREIGN_ALONE = word_set("warum weshalb wieso pourquoi comment quand combien porqué qué cuándo cómo cuánto wann wie wo")
# Wherever they stand, they stand for something.
FOREIGN_SURE = word_set(
    "er ihn ihm dessen davon dafür damit dazu darüber dabei daran cela ça lui eso esto ello él ella ellos ellas"
)
# Pronouns that stand for a thing said before. "Es", "il", "sie" and "le" too often stand for nothing.
FOREIGN_PRONOUNS = {
    "de": word_set("dessen deren davon dafür damit dazu darüber dabei daran ihn ihm dieser dieses diese diesen das"),
    "fr": word_set("cela ça celui celle ceux celles lui leur leurs elle elles ce en y"),
    "es": word_set("eso esto ello él ella ellos ellas ese esa este esta lo su sus"),
}
_FOREIGN_GRAMMAR = {
    "de": word_set(
        """
        der die das den dem des ein eine einen einem einer eines ist sind war waren wird werden wurde hat haben
        hatte kann können muss soll darf ich du er sie es wir ihr man mein dein sein und oder aber auch nicht
        kein keine in im an am auf aus bei mit nach von vom zu zum zur für über unter was wer wie wo wann warum
        welche welcher welches wieviel wenn als dass ob gibt noch dann bitte
        """
    ),
    "fr": word_set(
        """
        le la les l un une des du de d au aux est sont était a ont peut peux je tu il elle on nous vous ils elles mon ma
        mes son sa ses ce cet cette ces et ou mais ne pas dans en sur sous avec sans pour par que qui quoi qu quel
        quelle quels quelles comment quand où combien pourquoi si y se est-ce faut s
        """
    ),
    "es": word_set(
        """
        el la los las un una unos unas de del al es son era está están hay ha han puede puedo yo tú él ella se lo su sus
        mi mis y o pero no en con sin para por que qué quién quiénes cuál cuáles cómo cuándo dónde cuánto cuánta cuántos
        cuántas si como me te nos
        """
    ),
}
# Written in several of these languages, or in English too: they do not tell one from another.
_SHARED = word_set("a in an am on so me no die was des un la de es se en y o si par pour que war du s d l")
TELLING = {language: words - _SHARED for language, words in _FOREIGN_GRAMMAR.items()}
FOREIGN_GRAMMAR = frozenset().union(*_FOREIGN_GRAMMAR.values())
GRAMMAR = JOINTS | QUESTION_WORDS.keys() | MODALS.keys() | PERSONS.keys() | {POSSESSIVE}
GRAMMAR |= SUBJECTS | OBJECTS | POSSESSIVES | DEMONSTRATIVES | word_set("one ones ok okay yes hi hello thanks thank")
ENGLISH = GRAMMAR - _SHARED  # what tells English from the others
