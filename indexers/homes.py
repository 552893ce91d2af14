"""Where a collection's files are: in its folder, or after a migration in a home inside it; one small file says which.

`homes.json` is replaced by rename, so a collection changes from one home to another in one step, whatever crashes. A
collection that was never migrated has no such file and lives in its folder itself.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from indexers.errors import IndexCorrupt
from indexers.generation import replace_file

RECORD = "record.sqlite"
GENERATIONS = "generations"
OWN = "."
"""The home that is the collection's folder itself."""

HOMES_FILE = "homes.json"
_FOLDER = "homes"
_HOME = re.compile(rf"\.|{_FOLDER}/\d+")


@dataclass(frozen=True, slots=True)
class Homes:
    """The homes of a collection, as paths inside its folder; an empty one is none."""

    serving: str = OWN
    building: str = ""  # what a migration has begun and not ended
    previous: str = ""  # what served before, kept to go back to; it may be what is built

    @property
    def all(self) -> list[str]:
        """The homes that there are."""
        return [one for one in (self.serving, self.building, self.previous) if one]


def read_homes(folder: Path) -> Homes:
    """Returns the homes of a collection.

    Raises:
        IndexCorrupt: the file that names them cannot be read.
    """
    file = folder / HOMES_FILE
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        homes = Homes(**stored)
    except FileNotFoundError:
        return Homes()
    except (OSError, ValueError, TypeError) as error:
        raise IndexCorrupt(str(file), f"{error}; restore the collection from a backup") from error
    if not all(_HOME.fullmatch(str(one)) for one in homes.all) or not homes.serving:
        raise IndexCorrupt(str(file), "it names what is no home; restore the collection from a backup")
    return homes


def write_homes(folder: Path, homes: Homes) -> None:
    """Stores the homes of a collection, whole or not at all."""
    replace_file(folder / HOMES_FILE, json.dumps(asdict(homes)).encode())


def serving_home(folder: Path) -> Path:
    """Returns the folder with the record and the generations that serve. Raises: IndexCorrupt."""
    return folder / read_homes(folder).serving


def serving_record(folder: Path) -> Path:
    """Returns the record that serves, which may not be there. Raises: IndexCorrupt."""
    return serving_home(folder) / RECORD


def is_collection(folder: Path) -> bool:
    """Tells whether a folder is a collection's."""
    return folder.name[0] != "." and ((folder / RECORD).is_file() or (folder / HOMES_FILE).is_file())


def new_home(folder: Path) -> str:
    """Makes an empty home, with a number that none of the collection's has, and returns its path."""
    parent = folder / _FOLDER
    parent.mkdir(exist_ok=True)
    taken = [int(one.name) for one in parent.iterdir() if one.name.isdigit()]
    home = f"{_FOLDER}/{max(taken, default=0) + 1}"
    (folder / home).mkdir()
    return home


def sweep_homes(folder: Path) -> None:
    """Removes homes that a crash has left and that nothing names. Raises: IndexCorrupt."""
    there = [f"{_FOLDER}/{one.name}" for one in (folder / _FOLDER).glob("*")]
    for home in {OWN, *there} - set(read_homes(folder).all):
        _remove(folder, home)


def _remove(folder: Path, home: str) -> None:
    if home != OWN:
        shutil.rmtree(folder / home, ignore_errors=True)
        return
    shutil.rmtree(folder / GENERATIONS, ignore_errors=True)
    for file in folder.glob(f"{RECORD}*"):
        file.unlink(missing_ok=True)
