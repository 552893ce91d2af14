"""Pairs of words of which each turns the question round: directions, superlatives, negating prefixes."""

from __future__ import annotations

Pairs = tuple[tuple[str, str], ...]

DIRECTIONS: Pairs = (
    ("before", "after"), ("above", "below"), ("maximum", "minimum"), ("max", "min"), ("maximize", "minimize"),
    ("import", "export"), ("imports", "exports"), ("imported", "exported"), ("importing", "exporting"),
    ("upload", "download"), ("uploading", "downloading"), ("uploaded", "downloaded"),
    ("install", "uninstall"), ("installing", "uninstalling"), ("enable", "disable"), ("enabled", "disabled"),
    ("increase", "decrease"), ("increased", "decreased"), ("increases", "decreases"), ("increasing", "decreasing"),
    ("encrypt", "decrypt"), ("start", "stop"), ("started", "ended"),
    ("open", "close"), ("opening", "closing"), ("add", "remove"), ("adding", "removing"), ("added", "removed"),
    ("buy", "sell"), ("buying", "selling"), ("inside", "outside"), ("input", "output"), ("north", "south"),
    ("northern", "southern"), ("east", "west"), ("eastern", "western"), ("more than", "less than"),
    ("earlier", "later"), ("incoming", "outgoing"), ("internal", "external"), ("compress", "decompress"),
    ("lock", "unlock"), ("gain", "lose"), ("gaining", "losing"), ("horizontal", "vertical"),
    ("encode", "decode"), ("encoding", "decoding"), ("ascending", "descending"), ("upper", "lower"),
    ("win", "lose"), ("won", "lost"), ("higher", "lower"), ("larger", "smaller"), ("greater", "smaller"),
    ("parent", "child"), ("client", "server"), ("employer", "employee"), ("husband", "wife"), ("father", "mother"),
    ("boys", "girls"), ("men", "women"), ("teacher", "student"), ("teachers", "students"), ("king", "queen"),
    ("turn on", "turn off"), ("log in", "log out"), ("push", "pull"), ("hide", "show"),
    ("create", "delete"), ("creating", "deleting"), ("load", "unload"), ("indent", "unindent"), ("mount", "unmount"),
    ("the left", "the right"), ("forward", "backward"), ("rich", "poor"), ("arrival", "departure"),
    ("advantages", "disadvantages"), ("advantage", "disadvantage"), ("pros", "cons"), ("cause", "prevent"),
    ("at least", "at most"), ("hot", "cold"), ("offense", "defense"), ("ancient", "modern"), ("older", "younger"),
)  # fmt: skip

SUPERLATIVES: Pairs = (
    ("best", "worst"), ("largest", "smallest"), ("biggest", "smallest"), ("highest", "lowest"),
    ("oldest", "youngest"), ("longest", "shortest"), ("the most", "the least"), ("most common", "least common"),
    ("most popular", "least popular"), ("fastest", "slowest"), ("cheapest", "most expensive"),
    ("earliest", "latest"), ("easiest", "hardest"), ("strongest", "weakest"), ("richest", "poorest"),
    ("hottest", "coldest"), ("deepest", "shallowest"), ("nearest", "farthest"), ("tallest", "shortest"),
    ("most important", "least important"), ("most expensive", "cheapest"), ("smartest", "dumbest"),
    ("greatest", "smallest"), ("heaviest", "lightest"), ("newest", "oldest"),
)  # fmt: skip

PREFIXES: Pairs = (
    ("possible", "impossible"), ("legal", "illegal"), ("visible", "invisible"), ("safe", "unsafe"),
    ("available", "unavailable"), ("synchronous", "asynchronous"), ("encrypted", "unencrypted"),
    ("compressed", "uncompressed"), ("signed", "unsigned"),
    ("valid", "invalid"), ("sorted", "unsorted"),
    ("healthy", "unhealthy"), ("happy", "unhappy"), ("natural", "unnatural"),
    ("successful", "unsuccessful"), ("secure", "insecure"), ("dependent", "independent"),
    ("correct", "incorrect"), ("complete", "incomplete"), ("common", "uncommon"), ("employed", "unemployed"),
    ("equality", "inequality"), ("equal", "unequal"), ("fair", "unfair"),
    ("important", "unimportant"), ("usual", "unusual"), ("finite", "infinite"), ("active", "inactive"),
    ("organic", "inorganic"), ("secured", "unsecured"), ("authorized", "unauthorized"), ("paid", "unpaid"),
    ("expected", "unexpected"), ("obedience", "disobedience"), ("popular", "unpopular"),
    ("regulated", "unregulated"), ("married", "unmarried"), ("linear", "nonlinear"), ("ethical", "unethical"),
    ("profit", "nonprofit"), ("smokers", "nonsmokers"), ("useful", "useless"), ("harmful", "harmless"),
    ("fiction", "nonfiction"), ("violent", "nonviolent"), ("certain", "uncertain"), ("reliable", "unreliable"),
    ("necessary", "unnecessary"), ("limited", "unlimited"), ("official", "unofficial"), ("stable", "unstable"),
    ("familiar", "unfamiliar"), ("related", "unrelated"), ("moral", "immoral"), ("rational", "irrational"),
    ("regular", "irregular"), ("responsible", "irresponsible"), ("honest", "dishonest"), ("mature", "immature"),
)  # fmt: skip
