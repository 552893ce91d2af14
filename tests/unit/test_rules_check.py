"""Rules that can match nothing are told of at the start."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from indexers.types import CollectionKey, FieldType
from retrieval.server.rules_check import tell_idle_rules
from retrieval.settings.load import load_settings
from tests.fakes.gateways import gateway


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"field": "kind"}, []),
        ({"field": "klass"}, ["rule_field_unknown"]),
        ({"collections": ["docs"]}, []),
        ({"collections": ["doc"]}, ["rule_concerns_nothing"]),
        ({"tenants": ["default"], "field": "kind", "collections": ["notes"]}, ["rule_field_unknown"]),
    ],
)
async def test_rules_that_match_nothing_are_told(tmp_path: Path, rule: dict[str, object], told: list[str]) -> None:
    """A field that no collection of the rule's declares, and a collection that does not exist."""
    async with gateway(tmp_path, [{"name": "own", "kind": "extractive"}]) as rig:
        catalog = rig.app.engines.catalog
        await catalog.create(CollectionKey("default", "notes"), {"lang": FieldType.KEYWORD}, "")
        flags = {"generation.routing.rules": [{"name": "r", "backends": ["extractive"]} | rule]}
        with capture_logs() as lines:
            await tell_idle_rules(catalog, load_settings(None, {}, flags).settings)
    assert [line["event"] for line in lines if line["event"].startswith("rule_")] == told
