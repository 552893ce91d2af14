"""Opens the servers of the configured backends; called by the composition root."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from encoders.types import AsyncDenseEncoder
from retrieval.assembly import PassageCounter
from retrieval.generation.backend import Backend
from retrieval.generation.extractive import ExtractiveBackend
from retrieval.settings.generation import BackendSettings, GenerationSettings
from retrieval.token_counters import open_counter


def open_backends(
    settings: GenerationSettings,
    default_counter: PassageCounter,
    encoder: AsyncDenseEncoder | None,
    sentence_limit: Callable[[], int] | None = None,
    models_folder: Path | None = None,
) -> Mapping[str, Sequence[Backend]]:
    """Returns the servers of each backend, by its name. The caller closes them.

    `default_counter` counts for backends that name no tokenizer of their own. `encoder` lets extractive answers compare
    meanings; without one they compare words alone. `sentence_limit` gives the number of sentences that holds now, for
    settings that are reloaded; the one in `settings` holds without it. `models_folder` is where pulled models lie.

    Raises:
        ModelNotFound, ModelUnsupported: a backend's model or tokenizer cannot be opened.
    """
    limit = sentence_limit or (lambda: settings.extractive_sentences)
    folder = models_folder or Path("models")
    return {each.name: _open(each, default_counter, encoder, limit, folder) for each in settings.backends}


def _open(
    settings: BackendSettings,
    default_counter: PassageCounter,
    encoder: AsyncDenseEncoder | None,
    sentence_limit: Callable[[], int],
    models_folder: Path,
) -> Sequence[Backend]:
    if settings.kind == "llama":
        from retrieval.generation.llama_backend import open_llama  # noqa: PLC0415 - imports the client, as below

        return [open_llama(settings, models_folder, default_counter)]
    counter = open_counter(settings.tokenizer) if settings.tokenizer else default_counter
    if settings.kind == "extractive":
        return [ExtractiveBackend(settings.name, settings.context_window_tokens, counter, encoder, sentence_limit)]
    # Imported here: a service without a model server needs no HTTP client.
    from retrieval.generation.openai_backend import OpenAIBackend  # noqa: PLC0415

    return [OpenAIBackend(settings, counter, address) for address in (settings.base_url, *settings.replicas)]
