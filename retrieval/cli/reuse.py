"""What the answer cache did, in a sentence for a person: what served and what each gate saw, or why nothing served."""

from __future__ import annotations

from typing import Any

_QUESTIONS = {"equal": "the same question", "similar": "a question in other words"}
_REASONS = {
    "": "not asked",
    "off": "off for this request",
    "no_cache": "not asked, as was wished",
    "unknown": "no answer to such a question is known",
    "evidence": "retrieval does not find any more what the known answer was made from",
    "risk": "too little is known of how well the known answer to a similar question serves",
    "age": "the known answer is too old",
    "truncated": "the question is longer than the encoder takes",
    "degraded": "what was retrieved is not whole",
}


def reuse_remarks(reuse: dict[str, Any] | None) -> list[str]:
    """Returns what a plain `AnswerReuse` says, as lines; none for a server that says nothing of it."""
    if reuse is None:
        return []
    said = _served(reuse) if reuse["kind"] in _QUESTIONS else _made(reuse)
    return [f"answer cache: {'; '.join(said)}", *([f"answer key: {reuse['key']}"] if reuse["key"] else [])]


def age(milliseconds: float) -> str:
    """Returns a time span in the largest unit that it reaches."""
    seconds = milliseconds / 1e3
    for size, unit in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def _served(reuse: dict[str, Any]) -> list[str]:
    place = " in the shared tier" if reuse["tier"] == "shared" else ""
    said = [f"served the answer to {_QUESTIONS[reuse['kind']]}{place}, {age(reuse['age_ms'])} old"]
    return said + _gates(reuse) + (["a new answer is made besides, to compare"] if reuse["shadowed"] else [])


def _made(reuse: dict[str, Any]) -> list[str]:
    reason = _REASONS.get(reuse["reason"], f"the known question differs in: {reuse['reason'].replace('_', ' ')}")
    return [f"nothing served, {reason}", *_gates(reuse), *(["the new answer is kept"] if reuse["stored"] else [])]


def _gates(reuse: dict[str, Any]) -> list[str]:
    said = [f"similarity {reuse['similarity']:.3f}"] if 0.0 < reuse["similarity"] < 1.0 else []
    if (evidence := reuse["evidence"]) is not None:
        newer = f", {evidence['newcomers']} new passages above them" if evidence["newcomers"] else ""
        found = f"{evidence['found']} of {evidence['cited']} cited passages found unchanged{newer}"
        said.append("evidence checked a moment ago" if evidence["trusted"] else found)
    if (risk := reuse["risk"]) is not None:
        bound = f"{risk['error_bound']:.1%} of at most {risk['max_error_rate']:.1%}"
        said.append(f"risk of an error {bound}, after {risk['labels']} comparisons")
    return said
