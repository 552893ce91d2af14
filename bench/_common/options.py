"""The command-line options that the tools share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench._common.beir import Split
from bench._common.encodings import DEFAULT_FOLDER
from bench._common.results import Outputs
from retrieval.settings import Settings
from retrieval.settings.load import load_settings


def parser(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the options of every tool: outputs, settings and cache."""
    made = argparse.ArgumentParser(description=(description or "").split("\n", maxsplit=1)[0])
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results here")
    made.add_argument("--plot", type=Path, metavar="FILE", help="write the plot here; beside the JSON file by default")
    made.add_argument("--config", type=Path, metavar="FILE", help="a headrace.toml; its defaults otherwise")
    made.add_argument("--cache", type=Path, default=DEFAULT_FOLDER, metavar="DIR", help="where vectors are kept")
    return made


def add_set_options(made: argparse.ArgumentParser, split: Split) -> None:
    """Adds the options of tools that read sets in BEIR's layout."""
    made.add_argument("sets", type=Path, nargs="+", metavar="DIR", help="sets in BEIR's layout")
    made.add_argument("--qrels", default="test", metavar="NAME", help="the file in qrels/, without .tsv")
    made.add_argument("--split", type=Split, choices=list(Split), default=split, help="part of the queries")
    made.add_argument("--limit", type=int, default=0, metavar="N", help="queries of each set at most")


def outputs(arguments: argparse.Namespace) -> Outputs:
    """Returns where the tool writes."""
    return Outputs.of(arguments.json, arguments.plot)


def settings(arguments: argparse.Namespace, flags: Mapping[str, Any]) -> Settings:
    """Returns the settings of `--config` and HEADRACE_ variables, with a tool's own values on top.

    Raises:
        ConfigError: they cannot be used.
    """
    return load_settings(arguments.config, os.environ, flags).settings
