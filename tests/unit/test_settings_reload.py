"""What a reload takes over while other settings wait for a restart."""

from __future__ import annotations

from typing import Any

import pytest

from retrieval.errors import ConfigError
from retrieval.live import LiveSettings
from retrieval.settings.load import load_settings

EXTRACTIVE = {"name": "extractive", "kind": "extractive"}
PUBLIC = {"name": "public", "kind": "extractive"}
PRIVATE = {"name": "private", "kind": "extractive", "tier": "private"}
KEY = {"name": "k", "sha256": "0" * 64, "tenant": "t", "data_policy": "strict"}
OTHER = KEY | {"sha256": "1" * 64, "data_policy": ""}
ONLY_PRIVATE = {"name": "secrets", "field": "kind", "values": ["secret"], "tiers": ["private"]}


def running(**flags: Any) -> tuple[LiveSettings, dict[str, Any]]:
    """Returns settings in force, and the flags that the next reload reads."""
    named = {path.replace("__", "."): value for path, value in flags.items()}
    return LiveSettings(load_settings(None, {}, named), lambda: load_settings(None, {}, named)), named


def test_rule_does_not_go_before_the_backend_that_it_is_for() -> None:
    """Until the restart the removed backend serves, so its rule holds; everything else is taken over."""
    live, flags = running(
        generation__backends=[PUBLIC, PRIVATE],
        generation__default_backend="auto",
        generation__routing__rules=[ONLY_PRIVATE],
    )
    flags |= {"generation.backends": [PRIVATE], "generation.routing.rules": [], "generation.temperature": 0.5}
    done = live.reload()
    assert done.changed == ("generation.temperature",)
    assert set(done.needs_restart) == {"generation.backends", "generation.routing.rules"}
    assert [rule.name for rule in live.current.generation.routing.rules] == ["secrets"]
    assert live.reload().changed == ()


def test_rule_goes_at_once_where_its_backend_stays() -> None:
    """A rule alone is changed without a restart."""
    live, flags = running(
        generation__backends=[PUBLIC, PRIVATE],
        generation__default_backend="auto",
        generation__routing__rules=[ONLY_PRIVATE],
    )
    flags["generation.routing.rules"] = []
    assert live.reload().changed == ("generation.routing.rules",)
    assert live.current.generation.routing.rules == ()


def test_rule_does_not_go_before_the_key_that_it_is_for() -> None:
    """A key that was removed opens data until the restart, under the rules that were for it."""
    strict = {"name": "strict", "data_policies": ["strict"], "backends": ["extractive"]}
    live, flags = running(auth__keys=[KEY, OTHER], generation__routing__rules=[strict])
    flags |= {"auth.keys": [OTHER], "generation.routing.rules": []}
    assert set(live.reload().needs_restart) == {"auth.keys", "generation.routing.rules"}
    assert len(live.current.generation.routing.rules) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"generation.default_backend": "new"},
        {"generation.routing.rules": [{"name": "r", "tenants": ["t"], "backends": ["new"]}]},
        {"generation.conversation.rewrite": "model", "generation.conversation.rewrite_backend": "new"},
        {"generation.conversation.summarise": True},
        {"generation.max_output_tokens": 10_000, "generation.default_backend": "new"},
    ],
)
def test_settings_that_need_a_new_backend_wait_for_it(more: dict[str, Any]) -> None:
    """They are no error, and no more in force than the backend is."""
    live, flags = running(generation__backends=[EXTRACTIVE])
    new = {"name": "new", "kind": "openai", "base_url": "http://h/v1", "model": "m", "context_window_tokens": 16_384}
    flags |= {"generation.backends": [EXTRACTIVE, new]} | more
    before = live.current
    done = live.reload()
    assert done.changed == ()
    assert set(done.needs_restart) == {"generation.backends", *more}
    assert live.current == before


def test_settings_that_do_not_agree_with_what_waits_are_refused_whole() -> None:
    """What fits the file alone, but not what runs, is refused in words, and the old settings stay in force."""
    llm = {"name": "llm", "kind": "openai", "base_url": "http://h/v1", "model": "m"}
    live, flags = running(
        generation__backends=[llm], generation__default_backend="llm", generation__conversation__summarise=True
    )
    flags |= {
        "generation.backends": [llm, PUBLIC],
        "generation.conversation.summarise": False,
        "generation.conversation.history_tokens": 0,
        "generation.temperature": 0.5,
    }
    before = live.current
    with pytest.raises(ConfigError, match="summary_tokens must not be above history_tokens; it needs a restart"):
        live.reload()
    assert live.current is before
