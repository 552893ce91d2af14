"""The settings in force, and how a reload replaces them: checked first, then applied whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel

from retrieval.settings import Settings
from retrieval.settings.load import Loaded, leaves


@dataclass(frozen=True, slots=True)
class Reload:
    """What a reload did: paths with a new value in force, and paths that differ but need a restart.

    `asked` holds the settings that were read, those that need a restart included.
    """

    changed: tuple[str, ...]
    needs_restart: tuple[str, ...]
    asked: Loaded


class LiveSettings:
    """Holds the settings in force. A request reads `current` once, so it never sees two states."""

    def __init__(self, loaded: Loaded, load: Callable[[], Loaded]) -> None:
        self._loaded = loaded
        self._load = load
        self._subscribers: list[Callable[[Settings], None]] = []

    @property
    def current(self) -> Settings:
        """The settings in force."""
        return self._loaded.settings

    @property
    def origins(self) -> Loaded:
        """The settings in force with their origins."""
        return self._loaded

    def subscribe(self, subscriber: Callable[[Settings], None]) -> None:
        """Calls the subscriber with the new settings after each reload."""
        self._subscribers.append(subscriber)

    def reload(self) -> Reload:
        """Reads the sources again and takes over what can change without a restart.

        Raises:
            ConfigError: the new settings cannot be used; the old ones stay in force.
        """
        asked = self._load()
        before = {path: value for path, value, _ in leaves(self.current)}
        different = [(path, live) for path, value, live in leaves(asked.settings) if before[path] != value]
        merged = _merge(self.current, asked.settings)
        self._loaded = Loaded(merged, asked.origins, asked.file)
        for subscriber in self._subscribers:
            subscriber(merged)
        return Reload(
            changed=tuple(path for path, live in different if live),
            needs_restart=tuple(path for path, live in different if not live),
            asked=asked,
        )


def _merge(current: BaseModel, asked: BaseModel) -> Settings:
    merged = _merge_section(current, asked)
    assert isinstance(merged, Settings)
    return merged


def _merge_section(current: BaseModel, asked: BaseModel) -> BaseModel:
    values = {}
    for name, field in type(current).model_fields.items():
        old, new = getattr(current, name), getattr(asked, name)
        if isinstance(old, BaseModel):
            values[name] = _merge_section(old, new)
        else:
            extra = field.json_schema_extra
            values[name] = new if isinstance(extra, dict) and extra.get("reloadable") else old
    return type(current).model_validate(values)
