"""What `headrace models` prints: models, figures and speeds, as tables and as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from retrieval.cli.output import table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from encoders.catalog.benching import Bench
    from encoders.catalog.listing import ListedModel
    from encoders.catalog.record import CheckFigures, ModelRecord, Precision

_HASH_DIGITS = 12


def model_table(models: list[ListedModel]) -> RenderableType:
    """Returns models, one a line; a fault takes the place of what its check said."""
    columns = ["model", "kind", "dim", "tokens", "pooling", "prompts", "licence", "files", "hash", "check"]
    return table(columns, [_model_row(model) for model in models], right=columns[2:4])


def _model_row(model: ListedModel) -> list[str]:
    record = model.record
    if record is None:
        return [model.name, "", "", "", "", "", "", " ".join(model.precisions), "", model.fault]
    prompts = [prompt for prompt in (record.query_prompt, record.passage_prompt) if prompt]
    return [
        model.name,
        record.kind.value,
        str(record.dim or ""),
        str(record.max_tokens or ""),
        record.pooling or "",
        " | ".join(map(repr, prompts)),
        record.licence or "not named",
        " ".join(model.precisions),
        weights_hash(record)[:_HASH_DIGITS],
        _check_words(model),
    ]


def _check_words(model: ListedModel) -> str:
    if model.changed:
        return f"{', '.join(model.changed)} changed since the record"
    if model.record is None or not model.record.checks:
        return "not checked" if model.recorded else "no record"
    said = [f"{precision} {_brief(figures)}" for precision, figures in model.record.checks.items()]
    return ", ".join(said)


def _brief(figures: CheckFigures) -> str:
    likeness = figures.pearson if figures.lowest_cosine is None else figures.lowest_cosine
    return f"{'good' if figures.passed else 'FAILED'} {likeness:.3f}"


def weights_hash(record: ModelRecord) -> str:
    """Returns the SHA-256 of the weights: of the full-precision file where both are there."""
    weights = [name for name in record.files if name.endswith((".onnx", ".safetensors"))]
    best = min(weights, key=lambda name: ("int8" in name or "quant" in name, name), default=None)
    return "" if best is None else record.files[best].sha256


def model_value(model: ListedModel) -> dict[str, Any]:
    """Returns a listed model as a plain value."""
    return {
        "name": model.name,
        "folder": str(model.folder),
        "recorded": model.recorded,
        "changed": list(model.changed),
        "precisions": list(model.precisions),
        "fault": model.fault,
        "record": None if model.record is None else plain_record(model.record),
    }


def plain_record(record: ModelRecord) -> dict[str, Any]:
    """Returns a record as a plain value."""
    from pydantic import TypeAdapter

    value: dict[str, Any] = TypeAdapter(type(record)).dump_python(record, mode="json")
    return value


def plain_figures(figures: Mapping[Precision, CheckFigures]) -> dict[str, Any]:
    """Returns what checks said as plain values."""
    from dataclasses import asdict

    return {precision: asdict(found) for precision, found in figures.items()}


def figures_table(figures: Mapping[Precision, CheckFigures]) -> RenderableType:
    """Returns what checks said, one file a line."""
    columns = ["file", "references", "lowest cosine", "mean cosine", "correlation", "rank agreement", ""]
    rows = [
        (
            precision,
            str(found.reference_count),
            _number(found.lowest_cosine),
            _number(found.mean_cosine),
            _number(found.pearson),
            _number(found.rank_agreement),
            "good" if found.passed else "FAILED",
        )
        for precision, found in figures.items()
    ]
    return table(columns, rows, right=columns[1:6])


def bench_table(bench: Bench) -> RenderableType:
    """Returns speeds by length, and how much faster int8 is where both are there."""
    names = list(bench.speeds)
    columns = ["tokens", *(f"{name} {unit}" for name in names for unit in ("ms/token", "tokens/s"))]
    paired = "int8" in bench.speeds and "fp32" in bench.speeds
    rows = []
    for speeds in zip(*bench.speeds.values(), strict=True):
        cells = [cell for speed in speeds for cell in (f"{speed.ms_per_token:.3f}", f"{speed.tokens_per_s:.0f}")]
        by_name = dict(zip(names, speeds, strict=True))
        ratio = [f"{by_name['fp32'].ms / by_name['int8'].ms:.2f}"] if paired else []
        rows.append([str(speeds[0].tokens), *cells, *ratio])
    columns += ["int8 faster by"] if paired else []
    return table(columns, rows, right=columns)


def bench_value(bench: Bench) -> dict[str, Any]:
    """Returns speeds and figures as plain values."""
    speeds = {
        precision: [
            {"tokens": one.tokens, "ms": one.ms, "ms_per_token": one.ms_per_token, "tokens_per_s": one.tokens_per_s}
            for one in found
        ]
        for precision, found in bench.speeds.items()
    }
    return {"speeds": speeds, "checks": plain_figures(bench.figures)}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
