"""The one module that touches ONNX Runtime: opening a session, running it, and translating what it raises.

`Session.run` may be called from several threads at once, and with one intra-op thread it computes on the calling thread
and releases the interpreter lock. So a model is opened once and shared by all workers: weights are in memory once.

- Spinning is off: idle sessions otherwise burn a core each and slow every other thread down.
- Memory patterns are off: one is kept for each input length, and texts come in all lengths; without them it is as fast.
- `session.x64quantprecision` makes 8-bit weights exact on CPUs whose u8 x s8 products saturate in 16 bits; models that
  were quantized with a reduced range give the same bits at the same speed with it.
- The arena stays on: one text a run bounds what it keeps.
- Adding and normalising stay two kernels: fused into one they are slower on a CPU. The bundled model took 10 to 12 %
  less time a token without that fusion, at 64, 128 and 200 tokens, with the same agreement with full precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors  # type: ignore[import-untyped]

from encoders.errors import EncoderError, EncodingFailed, ModelNotFound, ModelUnsupported

_FOREIGN: tuple[type[Exception], ...] = (
    ort_errors.EPFail,
    ort_errors.EngineError,
    ort_errors.Fail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.InvalidProtobuf,
    ort_errors.ModelLoaded,
    ort_errors.NoModel,
    ort_errors.NoSuchFile,
    ort_errors.NotImplemented,
    ort_errors.RuntimeException,
    RuntimeError,
    TypeError,
    ValueError,
)
_ERROR_LEVEL = 3
_SLOW_FUSIONS = ["SkipLayerNormFusion"]

RUNTIME_VERSION: str = ort.__version__
"""Of ONNX Runtime: another one may compute the same model at another speed, and to other last digits."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a model: its name, and its shape where -1 stands for a length that varies."""

    name: str
    shape: tuple[int, ...]


class OnnxSession:
    """A model that is open: any number of threads may run it at once."""

    def __init__(self, session: Any, model: str) -> None:
        self._session = session
        self._model = model
        self.inputs = tuple(_tensor(node) for node in session.get_inputs())
        self.outputs = tuple(_tensor(node) for node in session.get_outputs())

    @classmethod
    def open(cls, path: Path, model: str, *, intra_op_threads: int = 1) -> OnnxSession:
        """Opens a model file; `model` is the name that errors carry.

        Raises:
            ModelNotFound: there is no such file.
            ModelUnsupported: ONNX Runtime cannot read it.
        """
        if not path.is_file():
            raise ModelNotFound(model, f"there is no file {path.name} in its folder; export the model to ONNX")
        with translated(ModelUnsupported(model, f"ONNX Runtime cannot open {path.name}; export the model again")):
            session = ort.InferenceSession(
                str(path),
                _options(intra_op_threads),
                providers=["CPUExecutionProvider"],
                disabled_optimizers=_SLOW_FUSIONS,
            )
        return cls(session, model)

    def run(self, inputs: Mapping[str, NDArray[Any]], output: str) -> NDArray[np.float32]:
        """Computes one named output on the calling thread.

        Raises:
            EncodingFailed: ONNX Runtime refused these inputs or failed on them.
        """
        with translated(EncodingFailed(self._model)):
            result: NDArray[np.float32] = self._session.run([output], inputs)[0]
        return result if result.dtype == np.float32 else result.astype(np.float32)


@contextmanager
def translated(error: EncoderError) -> Iterator[None]:
    """Raises the error in place of whatever ONNX Runtime raises in the body, also when another library calls it."""
    try:
        yield
    except _FOREIGN as cause:
        raise error from cause


def _options(intra_op_threads: int) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = intra_op_threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False
    options.log_severity_level = _ERROR_LEVEL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def _tensor(node: Any) -> Tensor:
    return Tensor(node.name, tuple(size if isinstance(size, int) else -1 for size in node.shape))
