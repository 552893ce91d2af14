"""The settings of the services under test, as TOML."""

from __future__ import annotations

from collections.abc import Sequence

BACKEND = "scripted"

_ROOM = 2000  # streams at once, more than any plan opens


def scripted_settings(models: Sequence[str], generation: str = "") -> str:
    """Returns the settings over scripted servers of one backend; `generation` are more lines at their end."""
    replicas = ", ".join(f'"{model}/v1"' for model in models[1:])
    backend = f"""
kind = "openai"
base_url = "{models[0]}/v1"
replicas = [{replicas}]
model = "scripted"
max_concurrent = {_ROOM}
max_queued = {_ROOM}
"""
    return settings_over(backend, f"[generation.queue]\ninitial_concurrent = {_ROOM}\n{generation}")


def settings_over(backend: str, generation: str = "") -> str:
    """Returns the settings over a backend. Answers are not cached: each one is made."""
    return f"""
[server]
port = 0

[context]
budget_tokens = 512

[cache.answers]
enabled = false

[generation]
default_backend = "{BACKEND}"

[[generation.backends]]
name = "{BACKEND}"
{backend}
{generation}"""
