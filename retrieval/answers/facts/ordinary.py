"""Words that a paraphrase may replace, and small groups of words that mean the same.

A word is here when exchanging it against another word of this list, in a question that is worded differently anyway,
seldom changes what is asked: verbs of doing and asking, adjectives of degree, abstract nouns. Things, people, places,
materials and whatever has an opposite are not.
"""

from __future__ import annotations

from retrieval.answers.facts.common import EVERYDAY
from retrieval.answers.facts.stems import word_key

_SYNONYMS = """
get obtain acquire
fix repair
method approach technique
error fault
show display
picture image photo
job occupation
salary wage
company firm
use utilize utilise employ
help assist
need require
make create build produce
kind type sort
reason cause
purpose aim goal
happen occur
big large
movie film
car automobile
doctor physician
phone telephone
mobile cellphone
app application
ask enquire inquire
answer reply
choose select pick
change modify alter
tip advice suggestion
smart good
famous popular
important significant
example instance
mean signify
located situated
setup configure
child kid
study learn
begin start
wrong incorrect
correct right
difference distinction
people person
website site
quit leave
book novel
cost price
feel feeling
"""
# Words whose presence or absence changes nothing.
_FREE = """
known particular certain specific stuff something exist exists people guys typically usually generally normally
commonly mainly
"""
_ORDINARY = """
ability accomplish accord achieve act action activity actual additional adequate advise affect aim allow alternative
amazing amount answer appear appropriate approach area aspect assist attempt available average aware awesome basic
basis become behave behavior believe beneficial better bit brief briefly bring call called capable care carry case
category certain challenge chance change characteristic check choice choose claim clear clearly combine come common
commonly compare comparison compute concept concern condition consider consist consequence contain content context
contribute convenient correct correctly cost could couple create criterion crucial cure deal decide define definition
depend describe description design desire detail detailed determine develop development differ difference differently
difficulty discover discuss display distinction distinguish effective effectively efficient efficiently effort element
emerge employ encounter encourage end engage enjoy ensure entail especially essential establish etc evaluate event
eventually evidence exact examine example excellent exist existence expect expectation experience explain explanation
explore express extent face fact factor famous favorite favourite feature feel feeling figure find fine fit fix focus
follow form frequently full function further general generally genuine give go goal great guess guide guideline handle
happen happening help helpful hint hold idea identify impact implement implication importance important impressive
improve include indicate individual influence inform information initiate inquire instance instruct instruction intend
interest interested interesting introduce introduction involve issue item join keep kind know knowledge known kick
lead learn leave legit level list live locate location look main mainly maintain make manage manner matter mean
meaning means measure mention method mind moment move name nature necessary need normal normally note notice number
obtain obvious occur occurrence offer often opinion option order ordinary organize original originate other otherwise
outcome overall part particular particularly people perceive perfect perform perhaps person personal pick place plan
play point popular possess possibility potential practical practice precise prefer preferable preferred prepare
presence primarily primary prime principle probable probably problem procedure process produce proper properly provide
purpose put question quality range rate reach real realize reason reasonable receive recommend recommendation
recommended refer reference regard relate related relation relationship relatively relevant rely remain remember
repair replace reply represent require requirement resolve respect respond response responsible result role rule run
satisfy say saying see seek seem seen select serious serve set setting shape share should show significant
significance similar similarity similarly situation solution solve someone somebody something sort sound special
specific speak spend stand standard state step stuff style subject succeed suggest suggestion suitable suppose
supposed sure sustain take talk task technique tell tend term think thought time tip tool topic total train treat
treatment trick true try turn type typical typically understand understanding unique unusual use used useful usage
user usual usually utilize value variety various view want wish wonder wonderful work works working worth would yield
truly truth advice review experienced thing behind hack decision perspective effect kindly people's guy anyone anybody
everyone everybody life world today day days anything earn much well far even still together around alone
"""
FREE = frozenset(map(word_key, _FREE.split()))
CANONICAL: dict[str, str] = {
    word_key(word): word_key(group.split()[0]) for group in _SYNONYMS.strip().splitlines() for word in group.split()
}
ORDINARY = frozenset(
    CANONICAL.get(word_key(word), word_key(word)) for word in (*_ORDINARY.split(), *_SYNONYMS.split(), *EVERYDAY)
)
