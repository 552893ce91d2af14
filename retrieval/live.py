"""The settings in force, and how a reload replaces them: checked first, then applied whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from retrieval.errors import ConfigError
from retrieval.settings import Settings
from retrieval.settings.load import Loaded, faults_of, leaves

# Who answers whom. While one of the first waits for a restart the second wait with it: a rule that went at once would
# leave the backend or the key that it was for to go on without it, and a new name may have nobody behind it yet.
_PARTIES = frozenset({"generation.backends", "auth.keys"})
_TERMS = frozenset(
    {
        "generation.default_backend",
        "generation.max_output_tokens",
        "generation.routing.rules",
        "generation.conversation.rewrite",
        "generation.conversation.rewrite_backend",
        "generation.conversation.summarise",
    }
)


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

        While backends or keys wait for one, so do the rules and all else that names backends.

        Raises:
            ConfigError: the new settings cannot be used; the old ones stay in force.
        """
        asked = self._load()
        before = {path: value for path, value, _ in leaves(self.current)}
        different = {path: live for path, value, live in leaves(asked.settings) if before[path] != value}
        held = _TERMS if _PARTIES & different.keys() else frozenset()
        taken = {path for path, live in different.items() if live and path not in held}
        merged = _merge(self.current, asked.settings, taken)
        self._loaded = Loaded(merged, asked.origins, asked.file)
        for subscriber in self._subscribers:
            subscriber(merged)
        return Reload(
            changed=tuple(path for path in different if path in taken),
            needs_restart=tuple(path for path in different if path not in taken),
            asked=asked,
        )


def _merge(current: Settings, asked: Settings, taken: AbstractSet[str]) -> Settings:
    """Returns the settings with the taken paths as asked.

    Raises:
        ConfigError: what is taken does not agree with what has to wait.
    """
    try:
        merged = _merge_section(current, asked, taken, "")
    except ValidationError as error:
        raise ConfigError(tuple(f"{fault}; it needs a restart" for fault in faults_of(error, {}))) from error
    assert isinstance(merged, Settings)
    return merged


def _merge_section(current: BaseModel, asked: BaseModel, taken: AbstractSet[str], prefix: str) -> BaseModel:
    values = {}
    for name in type(current).model_fields:
        old, new, path = getattr(current, name), getattr(asked, name), f"{prefix}{name}"
        if isinstance(old, BaseModel):
            values[name] = _merge_section(old, new, taken, f"{path}.")
        else:
            values[name] = new if path in taken else old
    return type(current).model_validate(values)
