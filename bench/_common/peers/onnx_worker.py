"""A child of `bench.peers` that runs sentence-transformers' ONNX back end, perhaps under another Python.

That back end comes from optimum-onnx, which wants older versions of transformers and huggingface-hub than the service
does; so this file imports nothing of ours. Arguments: `pairs` or `texts`, the model's folder, the limit in tokens. The
first line that it writes names its packages; then each line of JSON in is a task, and a line of JSON out is its values
and the nanoseconds that they took.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGES = ("sentence-transformers", "transformers", "optimum-onnx", "onnxruntime")
_STATES = "last_hidden_state"


def main() -> None:
    """Answers tasks until standard input ends."""
    kind, folder, max_tokens = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    # Libraries that print must not spoil the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    compute = _pairs(folder, max_tokens) if kind == "pairs" else _texts(folder, max_tokens)
    print(json.dumps(", ".join(f"{one} {version(one)}" for one in _PACKAGES)), file=answers, flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        started = time.perf_counter_ns()
        values = compute(task)
        spent_ns = time.perf_counter_ns() - started
        print(json.dumps({"values": values.tolist(), "spent_ns": spent_ns}), file=answers, flush=True)


def _pairs(folder: Path, max_tokens: int) -> Callable[[Any], Any]:
    import torch
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(
        str(folder),
        device="cpu",
        max_length=max_tokens,
        activation_fn=torch.nn.Identity(),
        backend="onnx",
        model_kwargs={"file_name": "model.onnx"},
    )
    return lambda task: model.predict([(task["query"], one) for one in task["passages"]], show_progress_bar=False)


def _texts(folder: Path, max_tokens: int) -> Callable[[Any], Any]:
    from sentence_transformers import SentenceTransformer

    _name_states(folder)
    model = SentenceTransformer(str(folder), device="cpu", backend="onnx", model_kwargs={"file_name": "states.onnx"})
    model.max_seq_length = max_tokens
    return lambda task: model.encode(task["passages"], show_progress_bar=False)


def _name_states(folder: Path) -> None:
    """Writes the model once more under the output name that optimum looks for."""
    import onnx

    model = onnx.load(folder / "model.onnx")
    [output] = [one for one in model.graph.output if len(one.type.tensor_type.shape.dim) == 3]
    for node in model.graph.node:
        node.output[:] = [_STATES if name == output.name else name for name in node.output]
    output.name = _STATES
    onnx.save(model, folder / "states.onnx")


if __name__ == "__main__":
    main()
