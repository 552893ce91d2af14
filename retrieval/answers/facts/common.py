"""Everyday words beyond those of `ordinary`: what people do, have and feel, and how they say it.

They may differ between two questions that are worded differently throughout. Substances, dishes, animals, devices,
software and trades are left out: one of these is mostly what a question is about.
"""

from __future__ import annotations

_DOING = """
abuse accelerate acknowledge acquire adapt add adhere admit adopt announce apologize appeal apply appoint appreciate
arise argue arrange arrest arrive assess assign assume attend attract await awake balance beat begin bet blame blow
born borrow bother break breathe broadcast browse burn calculate cancel capture catch caught cease celebrate chase
cheat check claim clean climb commit communicate compete complain complete compose comprise conclude conduct confess
confirm confuse conquer construct consult consume contact contract contrast convert convince cook cope copy count
cover crack crash criticize cross cry curb damage dare debate declare dedicate defeat delay delete deliver demand
demonstrate depart deploy deserve destroy detect devote dictate die disagree disappear discriminate dislike dispute
distribute divorce donate doubt draft draw dream dress drink drive drop earn eat edit educate elect eliminate
embarrass embed encode endure enforce enhance enrol enroll enter entitle erase escape estimate evolve exchange execute
exercise exit expand expire exploit expose extend face fall fear fight fill filter finance find finish fire fix flow
fly fold force forget forgive format found fund gain gather generate get govern grab grade grant grow guarantee handle
hang harm hear hide hire hit host hunt hurt imagine impress inherit inspire inspect insult integrate intend interact
interpret interrupt invade invent invest investigate invite join joke judge jump justify kill kiss knock land last
laugh launch lay learn left lie lift limit link listen load log lose lost made major manufacture mark marry master
match meet memorize mention merge migrate miss mix monitor motivate narrow negotiate notify obey observe offend
operate organise overcome owe own pack paint park participate pass pay persuade pick post practice praise pray predict
prepare preserve pretend print proceed program prohibit promise promote pronounce propose protect protest prove
publish punish pursue quit quote rank react rebuild recall recognize recommend record recover recruit recycle redeem
reflect refuse regret reject relax release relieve rely renew rent repeat report request research resign resist rest
restore restrict result resume retain retire retrieve return reveal review revise reward ride ring rise rob roll root
rotate ruin rush sacrifice satisfy save schedule score scratch search secure seize separate serve settle shift shoot
shop shout sign sing sit sleep smile smoke solve sort spell split spot spread stay steal step stick store stretch
strike struggle submit subscribe substitute suffer suit supply support surprise surround survive suspect suspend swap
switch talk teach tear test thank threaten throw touch trace track trade transfer transform translate transmit
transport travel trigger trust twist understood undo unite update upset vary verify visit vote wait wake walk wander
warn wash waste watch wear weigh welcome withdraw worry wrap wrote written spoken given gave taken took seen saw went
gone came done known gotten brought bought sold told said shown spent sent chosen drawn grown meant kept held paid led
built
"""
_BEING = """
able absolute absolutely absurd abundant acceptable accessible accurate active adequate adult advanced afraid
aggressive alive amazing ancient angry annoying anonymous anxious apparent applicable approximate artistic ashamed
asleep attractive authentic awful awkward beautiful bored boring brave bright brilliant broken busy calm careful
casual charming clever comfortable compatible competitive complex confident confused conscious consistent constant
continuous cool crazy creative crucial curious cute damaged dark dead deep delicious dependent depressed desperate
devoted direct dirty distinct dominant dry due dull dumb eager educated efficient embarrassing emotional empty
enormous entire equivalent essential eventual evil exciting exhausted experienced extra extreme extremely fair fake
fatal faster easier easiest hardest funniest weird fellow final financial fluent formal fortunate free frequent fresh
friendly funny generous gentle genuine glad global gorgeous grateful guilty handsome happy harmful healthier heavy
helpless hidden historic historical holy honest horrible huge humble hungry ideal ill immediate immense inevitable
informal innocent innovative inspiring intelligent intense jealous joint keen lazy legitimate likely lively logical
lonely loose loud lovely lucky mad massive mature maximum mental mere minimal missing mixed modern modest moral
motivated mutual mysterious mandatory natural neat nervous nearby nasty noble noisy notable numerous objective
obsessed odd official okay outstanding painful passionate pathetic patient peaceful permanent physical pleasant polite
powerful precious pregnant pretty productive professional profitable prominent proud pure qualified quiet radical
random rapid rare rational raw ready realistic reliable reluctant remarkable respective responsible rude sad scary
secret secure selfish sensible sensitive separate serious severe sexual shallow sharp shocking shy sick silent silly
sincere skilled sleepy smart smooth sole solid sorry spare spiritual stable steady sticky stiff strange strict stupid
sudden sufficient super supreme surprising suspicious sweet talented tall temporary terrible thick thin tired tiny
total traditional tremendous typical ugly ultimate unable unfair unhappy universal unknown unlikely unusual upset
urgent vague valuable vast violent visible vital voluntary vulnerable warm weary wealthy wild willing wise worthy
fully largely merely nearly partly rarely recently roughly seldom simply slightly sometimes soon suddenly totally
widely ago already almost although anymore anyway apart aside despite elsewhere forever hence however immediately
instead maybe meanwhile moreover nevertheless often otherwise perhaps quite rather regularly somehow somewhat
somewhere therefore though thus twice usually whenever wherever yet abroad ahead along altogether extent whether
straight
"""
_HAVING = """
abbreviation absence academic access accident account achievement acquaintance addiction address admission adult
advertisement afternoon agreement ambition amount anger announcement anxiety apology application appointment argument
arrangement arrival article assignment assistance association atmosphere attack attempt attendance attention attitude
audience author authority award awareness background balance battle beauty behavior behaviour belief birth birthday
blame body boss boyfriend boy brain breath brother building business campaign candidate capability career celebration
centre center century chance character charge charity choice circumstance citizen claim class client clothes code
colleague college comment communication community competition complaint concentration concept conclusion confidence
conflict connection consideration contact contest contract contribution control conversation cooperation country
couple course creation creativity credit crime crisis criticism crowd culture curiosity custom customer damage danger
data date daughter dealing death debate debt decade decision defeat definition degree delay demand department
depression description desire destruction detail development diet difficulty direction disadvantage disaster
discipline discovery discussion disease dispute distance doubt drama dream duration duty economy education effort
election emotion employee employment encounter energy entertainment enthusiasm environment era essay evening
examination exam exception exchange excitement excuse exercise existence expense expert explanation exposure
expression failure fairness faith fame family fan fashion father fault favor favour fear feedback field fight figure
finance flow food force foreigner formula foundation founder freedom friend friendship fun function fund future gain
game gap gender gift girl girlfriend goods government graduate graduation grammar ground group growth guard guest
guilt guy habit half happiness hatred head headline health heart help history hobby holiday home honesty honor honour
hope house human humanity humor humour husband idea identity illness image imagination impression improvement
inability income independence industry inequality influence ingredient injury innovation input insight inspiration
institution intelligence intention interaction internet internship interpretation interview introduction invention
investment invitation involvement issue joke journey joy judgment justice kindness knowledge lack lady land language
law leader leadership league lecture legacy lesson letter liability license lie lifestyle lifetime limit line link
literature location logic look loss luck man management manager marketing mark marriage master mate meal measurement
media medicine meeting member membership memory message mind minimum minority minute mistake mode moment money mood
morning mother motivation movement murder mystery myth nation nature neighbor neighborhood network news night notion
novel objective obligation observation obstacle occasion occupation offer office official operation opinion opponent
opportunity opposition organization origin outcome output owner package page pain pair paper parent participant
partner party passion past patience pattern pause payment peace people percentage perception performance period
permission personality perspective phase phenomenon philosophy phrase place placement planet pleasure plenty poem
point policy politician politics pool population position possession power practice precaution preparation presence
present presentation pressure prevention price pride principle priority privacy prize problem profession professor
profile profit program progress project promise promotion proof property proportion proposal protection protest
proverb psychology public punishment purchase quality query quote race rate ratio reaction reader reality recipe
recognition recommendation record recovery reduction reflection refund region regret regulation rejection relative
release relief religion reminder rent repetition replacement report reputation request research reservation resident
resolution resource respect rest restriction revenge revenue revolution reward right risk ritual romance room root
routine rumor sacrifice safety sale sample satisfaction scale scene schedule scholarship school science scientist
scope score script search season section sector security selection self sense sentence series session sex shame shape
share shock shop show side sight signal silence sister site size skill sleep society soldier solution son song soul
space speaker speech speed spelling spirit spouse staff stage statement statistics status stock story stranger
strategy strength stress structure struggle student success summary supporter surprise survey survival sympathy
symptom syllabus system talent target task taste tax teacher team teenager temper tension term test text theme theory
thesis threat ticket title tone topic touch town trade tradition training transition transportation trend trip trouble
trust truth tutorial uncle uniform union university user vacation variation vehicle version victim victory video
viewer village violence vision visit visitor vocabulary voice volume volunteer vote war warning waste weakness wealth
weapon weather wedding week weekend weight welfare wife will window winner wisdom wish witness woman word worker
workplace worry writer writing youth
"""
EVERYDAY = f"{_DOING} {_BEING} {_HAVING}".split()
