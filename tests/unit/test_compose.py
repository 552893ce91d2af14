"""The compose file is what the Compose Specification allows, and what our settings take."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from retrieval.settings.load import PREFIX, load_settings

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SCHEMA = json.loads((ROOT / "tests/data/compose-spec.json").read_text(encoding="utf-8"))


def test_compose_file_follows_the_published_schema():
    """The compose file is valid by the schema of the Compose Specification."""
    jsonschema.Draft7Validator(SCHEMA).validate(COMPOSE)


def test_published_schema_refuses_a_misspelt_key():
    """The schema is one that notices mistakes, so the test above means something."""
    broken = {**COMPOSE, "services": {"headrace": {"imagge": "x"}}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(SCHEMA).validate(broken)


@pytest.mark.parametrize("service", sorted(COMPOSE["services"]))
def test_service_is_pinned_and_checked(service):
    """Every image names a version, and every service has a health check."""
    definition = COMPOSE["services"][service]
    assert re.search(r":v?\d+\.\d+", definition["image"])
    assert definition["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}


def test_service_environment_is_settings_that_load():
    """The service's variables, once the secrets are filled in, are settings that load, with a key to call by."""
    environment = COMPOSE["services"]["headrace"]["environment"]
    assert all(variable.startswith(PREFIX) for variable in environment)
    filled = {name: re.sub(r"\$\{[^}]*\}", "0" * 64, value) for name, value in environment.items()}
    settings = load_settings(None, filled, {}).settings
    assert settings.server.host == "0.0.0.0"
    assert settings.auth.keys[0].tenant == "default"
    assert settings.index.kind == "qdrant"
