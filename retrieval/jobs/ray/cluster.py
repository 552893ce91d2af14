"""The only owner of the library `ray`: joins a cluster, and runs the stages of a job over it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

from indexers.errors import JobError
from retrieval.jobs.ray.rows import ItemToRead, Made, packed, unpacked
from retrieval.jobs.ray.stages import EncodeStage, ParseStage, StageOptions

_ENCODED_AT_ONCE = 16  # documents


class Cluster:
    """A Ray cluster that this process has joined."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def run(self, items: Sequence[ItemToRead], options: StageOptions, stored: Mapping[str, str]) -> Iterator[Made]:
        """Yields what comes out of the items, as it is ready, in any order; blocks, and holds back what runs ahead.

        Closing the iterator stops the stages. Raises:
            JobError: the cluster cannot go on with the work.
        """
        ray = self._ray
        fingerprints = ray.put(dict(stored))
        cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
        parsers, encoders = max(1, cpus // 4), max(1, cpus - max(1, cpus // 4))
        dataset = ray.data.from_items([packed(item) for item in items], override_num_blocks=_blocks(items, parsers))
        dataset = dataset.flat_map(
            _Parsing, fn_constructor_args=(options, fingerprints), compute=_pool(ray, parsers), num_cpus=0.5
        )
        dataset = dataset.map_batches(
            EncodeStage,
            fn_constructor_args=(options,),
            compute=_pool(ray, encoders),
            batch_size=_ENCODED_AT_ONCE,
            num_cpus=0.5,
        )
        try:
            for row in dataset.iter_rows():
                yield unpacked(row)
        except ray.exceptions.RayError as error:
            raise JobError(f"the Ray cluster cannot go on: {str(error).splitlines()[0]}") from error


class _Parsing(ParseStage):
    """Fetches the fingerprints from the cluster's object store first."""

    def __init__(self, options: StageOptions, stored: Any) -> None:
        import ray  # noqa: PLC0415 - of the extra `ray`

        super().__init__(options, ray.get(stored))


@contextmanager
def cluster(address: str, workers: int) -> Iterator[Cluster]:
    """Joins the cluster at an address, or starts one on this machine for an empty one, and leaves it.

    Raises:
        JobError: Ray is not installed, or there is no cluster.
    """
    try:
        import ray  # noqa: PLC0415 - of the extra `ray`
        import ray.data  # noqa: PLC0415
    except ImportError as error:
        raise JobError("engine = \"ray\" needs the extra `ray`: pip install 'headrace[ray]'") from error
    started = not ray.is_initialized()
    if started:
        _join(ray, address, workers)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        with redirect_stdout(sys.stderr):  # Ray prints what befalls its workers, and ours is for results
            yield Cluster(ray)
    finally:
        if started:
            ray.shutdown()


def _join(ray: Any, address: str, workers: int) -> None:
    options = {"address": address} if address else {"num_cpus": workers, "include_dashboard": False}
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, configure_logging=True, **options)
    except (ConnectionError, RuntimeError) as error:
        raise JobError(f"no Ray cluster at {address or 'this machine'}: {error}") from error


def _pool(ray: Any, most: int) -> Any:
    return ray.data.ActorPoolStrategy(min_size=1, max_size=most)


def _blocks(items: Sequence[ItemToRead], parsers: int) -> int:
    """Small blocks, so that little has to be read again when a worker is lost."""
    return max(1, min(len(items), 4 * parsers))
