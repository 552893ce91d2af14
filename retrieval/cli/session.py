"""What every command shares: where its settings come from, which server it talks to, whether it prints JSON.

`with_session` gives a command these options without listing them in its signature: its first parameter is the `Session`
made from them. It also turns our errors into a sentence and an exit code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from retrieval.cli.exits import WrongUse, one_sentence

if TYPE_CHECKING:
    from retrieval.settings.load import Loaded

SERVER_VARIABLE = "HEADRACE_SERVER"
API_KEY_VARIABLE = "HEADRACE_API_KEY"

_OPTIONS: Mapping[str, Any] = {
    "config": Annotated[Path | None, typer.Option("--config", metavar="FILE", help="The settings file.")],
    "data": Annotated[Path | None, typer.Option("--data", metavar="FOLDER", help="The data folder.")],
    "sets": Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="A setting of this command; a server has its own."),
    ],
    "server": Annotated[
        str, typer.Option("--server", metavar="ADDRESS", help=f"The server; otherwise {SERVER_VARIABLE}.")
    ],
    "api_key": Annotated[
        str, typer.Option("--api-key", metavar="KEY", help=f"The API key; otherwise {API_KEY_VARIABLE}.")
    ],
    "json": Annotated[bool, typer.Option("--json", help="Print one JSON object.")],
}
_DEFAULTS: Mapping[str, Any] = {"config": None, "data": None, "sets": None, "server": "", "api_key": "", "json": False}

JSON_ONLY = ("json",)
SETTINGS = ("config", "data", "sets", "json")
CLIENT = ("config", "data", "sets", "server", "api_key", "json")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What comes from outside: the variables for settings, and the client's own two."""

    environ: Mapping[str, str]  # without the client's variables, which are no settings
    server: str
    api_key: str

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Surroundings:
        """Splits the environment."""
        rest = dict(environ)
        server, api_key = rest.pop(SERVER_VARIABLE, ""), rest.pop(API_KEY_VARIABLE, "")
        return cls(rest, server, api_key)


@dataclass(frozen=True, slots=True)
class Session:
    """The options that commands share."""

    surroundings: Surroundings
    config: Path | None = None
    data: Path | None = None
    sets: tuple[str, ...] = ()
    server: str = ""
    api_key: str = ""
    json: bool = False

    def load(self, flags: Mapping[str, Any] | None = None) -> Loaded:
        """Returns the resolved settings; `flags` are those of the command itself.

        Raises:
            ConfigError: lists every fault.
            WrongUse: a `--set` is not PATH=VALUE.
        """
        from retrieval.settings.load import load_settings

        chosen = {"data.folder": str(self.data)} if self.data is not None else {}
        return load_settings(
            self.config, self.surroundings.environ, chosen | _assignments(self.sets) | dict(flags or {})
        )


def with_session(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the shared options of these names; its first parameter becomes the session."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(ctx: typer.Context, **given: Any) -> None:
            shared = {name: given.pop(name) for name in names}
            surroundings: Surroundings = ctx.obj
            if "sets" in shared:
                shared["sets"] = tuple(shared["sets"] or ())
            shared["server"] = shared.get("server") or surroundings.server
            shared["api_key"] = shared.get("api_key") or surroundings.api_key
            with one_sentence():
                command(Session(surroundings, **shared), **given)

        _describe(run, command, names)
        return run

    return decorate


def _describe(run: Callable[..., Any], command: Callable[..., Any], names: tuple[str, ...]) -> None:
    """Tells Typer, which reads signatures, of the command's own parameters and of the shared ones."""
    hints = get_type_hints(command, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [
        parameter.replace(kind=keyword, annotation=hints[name])
        for name, parameter in list(inspect.signature(command).parameters.items())[1:]
    ]
    shared = [inspect.Parameter(name, keyword, default=_DEFAULTS[name], annotation=_OPTIONS[name]) for name in names]
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature([context, *own, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [context, *own, *shared]}


def _assignments(sets: tuple[str, ...]) -> dict[str, Any]:
    return dict(_assignment(text) for text in sets)


def _assignment(text: str) -> tuple[str, Any]:
    """Reads PATH=VALUE; a value in brackets or braces is read as JSON, any other is text that the tree converts."""
    import json

    path, sign, value = text.partition("=")
    if not (sign and path.strip()):
        raise WrongUse(f"--set {text!r} is not PATH=VALUE; write it like --set retrieval.top_k=20")
    if not value.lstrip().startswith(("[", "{")):
        return path.strip(), value
    try:
        return path.strip(), json.loads(value)
    except json.JSONDecodeError as error:
        raise WrongUse(f"--set {path}: the value is no JSON ({error}); write lists like [1, 2]") from None
