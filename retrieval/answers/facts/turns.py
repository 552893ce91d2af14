"""Quantifiers, superlatives and words with an opposite: both questions must have the same ones.

Words of one group mean the same here. Exchanging one for a word of another group turns a question into its look-alike.
"""

from __future__ import annotations

from retrieval.answers.facts.stems import GERUND, word_key
from retrieval.answers.facts.vocabulary import word_map, word_set

_MARK = "!"  # sets these keys apart from those of other words
ORDINALS = (
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
)
_MEANINGS = word_map(
    """
    all: all every each entire whole everyone everybody everything always; most: most mostly majority; many: many
    lots; few: few fewer; more: more greater; less: less lesser; least: least; only: only solely exclusively;
    both: both; either: either; half: half; double: double twice; once: once; several: several; enough: enough
    sufficient; last: last final finally ultimately; next: next following subsequent; previous: previous preceding
    former; latest: latest newest recent; earliest: earliest oldest; current: current present; future: future;
    past: past; old: old older; new: new newer; maximum: maximum max highest maximal; minimum: minimum min lowest
    minimal; biggest: biggest largest; smallest: smallest tiniest; longest: longest; shortest: shortest; fastest:
    fastest quickest; slowest: slowest; cheapest: cheapest; dearest: dearest costliest priciest; strongest:
    strongest; weakest: weakest; nearest: nearest closest; farthest: farthest furthest; better: better; worst:
    worst worse; top: top; bottom: bottom; upper: upper; decrease: lower decrease reduce shrink fall drop lessen;
    increase: increase raise grow gain rise boost; reject: decline reject; enable: enable activate; disable:
    disable deactivate; allow: allow permit enabled; forbid: forbid prohibit deny block ban; start: start begin
    commence; end: end finish complete; open: open; close: close shut; lock: lock; unlock: unlock; connect:
    connect attach; disconnect: disconnect detach; install: install; uninstall: uninstall; import: import; export:
    export; upload: upload; download: download; push: push; pull: pull; send: send; receive: receive; buy: buy
    purchase; sell: sell; lend: lend; borrow: borrow; win: win; lose: lose; encrypt: encrypt encode; decrypt:
    decrypt decode; compress: compress zip; decompress: decompress unzip extract; read: read; write: write; add:
    add; remove: remove delete erase; insert: insert; subtract: subtract; multiply: multiply; divide: divide;
    input: input; output: output; inbound: inbound incoming; outbound: outbound outgoing; internal: internal;
    external: external; public: public; private: private; left: left; right-hand: right-hand; north: north; south:
    south; east: east; west: west; true: true; false: false; valid: valid; invalid: invalid; legal: legal;
    illegal: illegal; possible: possible; impossible: impossible; safe: safe; unsafe: unsafe dangerous; positive:
    positive; negative: negative; male: male; female: female; hot: hot; cold: cold; heat: heat warm; cool: cool;
    pass: pass; passed: passed; accept: accept approve; success: success succeed successful; failure: failure;
    advantage: advantage benefit pro pros upside; disadvantage: disadvantage drawback con cons downside; same:
    same equal identical; different: different unequal; exceed: exceed; minimise: minimise minimize; maximise:
    maximise maximize; upgrade: upgrade; downgrade: downgrade; online: online; offline: offline; local: local;
    remote: remote; client: client; server: server; parent: parent; child: child; winter: winter; summer: summer;
    day: day; night: night; morning: morning; evening: evening; buyer: buyer; seller: seller; employer: employer;
    employee: employee; teacher: teacher; student: student; sender: sender; receiver: receiver recipient; source:
    source; destination: destination target; cause: cause; effect: effect consequence; ascending: ascending;
    descending: descending; horizontal: horizontal; vertical: vertical; inner: inner; outer: outer; major: major;
    minor: minor; manual: manual manually; automatic: automatic automatically; optional: optional; mandatory:
    mandatory required compulsory; include: include included; exclude: exclude excluded; daily: daily; weekly:
    weekly; monthly: monthly; yearly: yearly annual annually; hourly: hourly; today: today; yesterday: yesterday;
    tomorrow: tomorrow; now: now; later: later; earlier: earlier; early: early; late: late; forward: forward;
    backward: backward; upstream: upstream; downstream: downstream; clockwise: clockwise; anticlockwise:
    anticlockwise counterclockwise; rich: rich; bad: poor bad; young: young; high: high; low: low; long: long;
    short: short; fast: fast quick quickly rapidly; slow: slow slowly; hard: hard difficult tough; easy: easy
    simple easily; strong: strong; weak: weak; big: big large; small: small little; good: good great nice best
    greatest; cheap: cheap inexpensive affordable; expensive: expensive costly; healthy: healthy; unhealthy:
    unhealthy; love: love; hate: hate; ignore: ignore skip
    """
)
# Of these words, the ones that a question worded differently may bring in or leave out.
MILD_TURNS = frozenset(
    f"{_MARK}{word}"
    for word in word_set(
        """
        advantage better big buy cause current different easy effect fast future good hard high long love low
        many more most new now old online open possible read send short small start student success today top
        true write young
        """
    )
)


def _keys() -> dict[str, str]:
    ordinals = {f"{number}th": word for number, word in enumerate(ORDINALS, start=1)}
    meanings = {word: word for word in ORDINALS} | ordinals | _MEANINGS
    stems = {word_key(word): meaning for word, meaning in meanings.items()}
    return {word: _MARK + meaning for word, meaning in (stems | meanings).items()}


_KEYS = _keys()


def turn_key(word: str) -> str | None:
    """Returns the key of a small-letter word that turns the meaning, or None when it is not one."""
    return _KEYS.get(word) or _KEYS.get(word_key(word).removesuffix(f"+{GERUND}"))


def plain_turn(key: str) -> str:
    """Returns a key without what marks it as a turn."""
    return key.removeprefix(_MARK)
