"""`headrace keys`: makes API keys. The server stores their hashes only, so a key is shown once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from retrieval.cli.exits import WrongUse
from retrieval.cli.output import print_json
from retrieval.cli.session import JSON_ONLY, Session, with_session

commands = typer.Typer(help="Make API keys.", no_args_is_help=True)


@commands.callback()
def _group() -> None:
    pass


@commands.command("new")
@with_session(*JSON_ONLY)
def new(
    session: Session,
    name: Annotated[str, typer.Argument(help="What the log calls the key.")],
    tenant: Annotated[str, typer.Option("--tenant", help="Whose data the key opens.")] = "default",
    roles: Annotated[list[str] | None, typer.Option("--role", help="read, write or admin; may be given again.")] = None,
    data_policy: Annotated[
        str, typer.Option("--data-policy", help="A name for what may be done with the data, for caches and rules.")
    ] = "",
    expires: Annotated[str, typer.Option("--expires", metavar="TIME", help="When the key ends, in ISO 8601.")] = "",
) -> None:
    """Make an API key, and the lines that admit it in headrace.toml. The key is shown this once."""
    from retrieval.identity import new_key

    made = new_key()
    fields: dict[str, object] = {
        "name": name,
        "sha256": made.sha256,
        "tenant": tenant,
        "roles": roles or ["read"],
        "data_policy": data_policy,
        "expires_at": _time(expires),
    }
    entry = _checked(fields)
    if session.json:
        print_json({"key": made.key, **fields, "expires_at": expires or None})
        return
    typer.echo(f"key: {made.key}\n\nAdd this to headrace.toml; it holds the key's hash, not the key:\n\n{entry}")


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise WrongUse(f"--expires {text!r} is no time; write it like 2030-01-31T00:00:00Z") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _checked(fields: dict[str, object]) -> str:
    """Returns the entry as TOML, once the settings tree would take it."""
    from pydantic import ValidationError

    from retrieval.settings.service import ApiKey
    from retrieval.settings.shown import toml_value

    try:
        entry = ApiKey.model_validate(fields)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors(include_url=False)
        )
        raise WrongUse(f"the key cannot be made: {faults}") from None
    parts = ((name, getattr(entry, name)) for name in type(entry).model_fields)
    return "\n".join(
        ["[[auth.keys]]", *(f"{name} = {toml_value(value)}" for name, value in parts if value is not None)]
    )
