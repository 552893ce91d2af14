"""Settings that cannot be meant are refused, by name."""

from __future__ import annotations

from typing import Any

import pytest

from retrieval.errors import ConfigError
from retrieval.settings.load import load_settings

KEY = {"name": "k", "sha256": "0" * 64, "tenant": "t"}
OWN = {"name": "own", "kind": "extractive", "tier": "private", "region": "eu"}
LLM = {"name": "llm", "kind": "openai", "base_url": "http://h/v1", "model": "m", "context_window_tokens": 4096}
BOTH = {"generation.backends": [OWN, LLM], "generation.default_backend": "llm"}


def rules(*rules: dict[str, Any]) -> dict[str, Any]:
    """Returns settings of two backends with these rules; each allows `own` alone unless it says otherwise."""
    made = [{"name": f"r{number}", "backends": ["own"]} | rule for number, rule in enumerate(rules)]
    return BOTH | {"generation.default_backend": "auto", "generation.routing.rules": made}


def faults(settings: dict[str, Any]) -> str:
    """Returns what loading these settings is refused with."""
    with pytest.raises(ConfigError) as refused:
        load_settings(None, {}, settings)
    return str(refused.value)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (rules({"collections": ["Not A Name"]}), "generation.routing.rules.0.collections.0: 'Not A Name' is no name"),
        (rules({"tenants": ["Acme"]}), "generation.routing.rules.0.tenants.0: 'Acme' is no name"),
        (rules({"tenants": [""]}), "leave the list empty for all"),
        (rules({"field": " s ", "values": ["x"]}), "generation.routing.rules.0.field: ' s '"),
        (rules({"field": "", "values": ["x"]}), "values need a field"),
        (rules({"data_policies": ["typo"]}) | {"auth.keys": [KEY]}, "'r0' is for data policies that no key has: typo"),
        (rules({"backends": [], "regions": ["ue"]}), "no backend meets 'r0'"),
        (rules({"backends": [], "tiers": ["edge"]}), "no backend meets 'r0'"),
        (rules({"tiers": ["central"]}), "no backend meets 'r0'"),
        (rules({"name": "a"}, {"name": "a"}), "routing.rules: two are called 'a'"),
        (rules({}, {"backends": ["llm"]}), "'r0', 'r1' together leave no backend"),
        (rules({}) | {"generation.default_backend": "llm"}, "default_backend 'llm' is forbidden to everyone by rule"),
    ],
)
def test_rule_that_cannot_apply_or_be_met_is_refused(settings: dict[str, Any], named: str) -> None:
    """A rule that never applies fails open, one that nobody meets fails shut, both in silence."""
    assert named in faults(settings)


@pytest.mark.parametrize(
    "settings",
    [
        rules({"data_policies": ["eu"]}),
        rules({"data_policies": ["eu"]}) | {"auth.keys": [KEY | {"data_policy": "eu"}]},
        rules({"data_policies": [""]}) | {"auth.keys": [KEY]},
        rules({"tenants": ["a"]}, {"tenants": ["b"], "backends": ["llm"]}) | {"generation.default_backend": "llm"},
        rules({"field": "kind of thing"}) | {"generation.default_backend": "llm"},
        rules({"backends": [], "tiers": ["private", "edge"], "regions": ["eu", "uk"]}),
    ],
)
def test_rule_that_can_apply_and_be_met_is_taken(settings: dict[str, Any]) -> None:
    """Rules of some callers may forbid them the default backend, and may list more than there is."""
    load_settings(None, {}, settings)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"generation.queue.tenants": [{"tenant": "a", "weight": 1}, {"tenant": "a", "weight": 9}]}, "queue.tenants"),
        ({"http.port": 50051}, "http.port: 50051 is server.port too"),
        ({"http.port": 9, "server.metrics_port": 9}, "server.metrics_port: 9 is http.port too"),
        ({"generation.resilience.hedge": True, "generation.resilience.hedge_share": 0.0}, "hedge needs a hedge_share"),
        ({"generation.conversation.rewrite": "model"}, "conversation.rewrite: no backend is a model"),
        ({"generation.conversation.summarise": True}, "conversation.summarise: no backend is a model"),
        (BOTH | {"generation.conversation.rewrite_backend": "own"}, "conversation.rewrite_backend 'own' is extractive"),
        (
            BOTH | {"generation.conversation.summarise": True, "generation.conversation.history_tokens": 100},
            "summary_tokens must not be above history_tokens",
        ),
        (BOTH | {"generation.max_output_tokens": 5000}, "max_output_tokens is above 4096"),
        (
            BOTH | {"generation.max_output_tokens": 9000, "generation.default_backend": "auto"},
            "max_output_tokens is above 8192",
        ),
        ({"cache.policies": [{"collection": "Not A Name"}]}, "cache.policies.0.collection"),
        ({"cache.policies": [{"field": "f ", "value": "x"}]}, "cache.policies.0.field"),
        ({"jobs.store": "redis"}, "cache.redis.url: jobs.store = 'redis' needs it"),
    ],
)
def test_settings_that_do_not_agree_are_refused(settings: dict[str, Any], named: str) -> None:
    """What would do nothing, or could never work, is a mistake."""
    assert named in faults(settings)


def test_settings_that_agree_are_taken() -> None:
    """Nothing of this is refused where there is a model, and ports of 0 are none."""
    conversation = {"rewrite": "model", "summarise": True, "rewrite_backend": "llm", "history_tokens": 160}
    generation = {f"generation.conversation.{name}": value for name, value in conversation.items()}
    jobs = {"jobs.store": "redis", "cache.redis.url": "redis://queue:6379"}
    load_settings(None, {}, BOTH | generation | jobs | {"server.port": 0, "generation.max_output_tokens": 4096})


def test_every_fault_of_a_section_is_told_at_once() -> None:
    """Two rules that are wrong need one run to be seen."""
    said = faults(rules({"backends": ["gone"]}, {"tiers": ["edge"]}))
    assert "'r0' names backends that do not exist: gone" in said
    assert "no backend meets 'r1'" in said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"base_url": "ftp://h/v1"}, "is no address of an HTTP server"),
        ({"base_url": "h:8000/v1"}, "is no address of an HTTP server"),
        ({"base_url": "http://h:port/v1"}, "is no address of an HTTP server"),
        ({"base_url": "http://h/v1 beta"}, "holds a space"),
        ({"base_url": "http://h/v1/chat/completions/"}, "up to and including /v1"),
        ({"replicas": ["http://h/v1/"]}, "two of its addresses are the same"),
        ({"replicas": [""]}, "is no address of an HTTP server"),
        ({"api_key": "swordfish\nX-Evil: 1"}, "holds a control character"),
    ],
)
def test_backend_that_cannot_be_reached_is_refused(changed: dict[str, Any], said: str) -> None:
    """Its setting is named, and neither an address nor a key is repeated, since they may hold secrets."""
    told = faults({"generation.backends": [LLM | changed], "generation.default_backend": "llm"})
    assert said in told
    assert f"generation.backends.0.{next(iter(changed))}" in told or "same" in said
    assert "swordfish" not in told
    assert "//h" not in told
