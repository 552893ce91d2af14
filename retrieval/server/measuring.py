"""Says which model files serve, and measures what their tokens cost when no start with this data folder has yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import structlog

from encoders.errors import EncoderError
from encoders.scheduler import TokenScheduler
from retrieval.server.beside import beside
from retrieval.server.convert.models import ServedModel

_log = structlog.get_logger("headrace")


@asynccontextmanager
async def measuring_costs(models: Sequence[ServedModel], scheduler: TokenScheduler) -> AsyncIterator[None]:
    """Measures beside the body, at the priority of bulk work; what is not done when the body ends is left undone."""
    for model in models:
        _tell(model)
    async with beside(_measure(models, scheduler)):
        yield


async def _measure(models: Sequence[ServedModel], scheduler: TokenScheduler) -> None:
    for model in models:
        calibration = model.calibration
        if calibration is None or calibration.curve is not None:
            continue
        try:
            curve = await asyncio.get_running_loop().run_in_executor(scheduler.bulk_threads, calibration.measure)
        except EncoderError as error:
            _log.warning("token_cost_not_measured", model=model.model_id, error=str(error))
            continue
        if curve is not None:
            _log.info("token_cost_measured", model=model.model_id, piece_budget_tokens=curve.policy.budget_tokens)


def _tell(model: ServedModel) -> None:
    choice = model.choice
    if choice is None:
        return
    figures = choice.figures
    _log.info(
        "model",
        role=model.role,
        model=model.model_id,
        file=choice.file,
        precision=choice.precision,
        int8_speed=choice.int8_speed and round(choice.int8_speed, 2),
        compared=figures.reference_count if figures else 0,
        lowest_cosine=figures and figures.lowest_cosine and round(figures.lowest_cosine, 4),
        pearson=figures and figures.pearson and round(figures.pearson, 4),
        rank_agreement=figures and round(figures.rank_agreement, 3),
    )
