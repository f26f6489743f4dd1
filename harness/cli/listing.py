"""``harness ls``: the cases, models and splits there are. Imports no torch."""

import argparse
import csv
import json
import sys
from collections.abc import Callable
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from tabulate import tabulate

from harness.cli.common import Commands
from harness.cli.common import add_select
from harness.cli.common import add_settings
from harness.cli.common import selected_cases
from harness.cli.common import session_of
from harness.digest import Plain
from harness.errors import MissingInput
from harness.session import Session
from harness.zoo.sources import RandomWeights
from harness.zoo.spec import ModelSpec
from harness.zoo.weights import locate

Row: TypeAlias = dict[str, Plain]

_NEVER, _HERE, _RANDOM = "never", "here", "random"
"""States as programs read them."""

_RUN = ("suite", "models_file", "data_root", "cache_dir", "universe", "protocol")


def add_commands(commands: Commands) -> None:
    """Declare the commands."""
    description = "list cases, models or splits"
    kinds = commands.add_parser("ls", help=description, description=description).add_subparsers(
        metavar="WHAT", required=True
    )
    for name, run, description in (
        (
            "cases",
            _cases,
            "list cases and what became of them: passed, failed, skipped or not run (in csv and json: never)",
        ),
        (
            "models",
            _models,
            "list the models file: group, parameters, licence, and weights (those missing: harness validate)",
        ),
        ("splits", _splits, "list splits: concepts, images, mean similarity to seen ones, and whether data are here"),
    ):
        parser = kinds.add_parser(name, help=description, description=description)
        parser.set_defaults(run=run)
        parser.add_argument(
            "--format", choices=("plain", "csv", "json"), default="plain", help="default: plain, a line each"
        )
        add_settings(parser, *_RUN)
        if name == "cases":
            add_select(parser)
            add_settings(parser, "reports_dir")


def _cases(options: argparse.Namespace) -> int:
    session = session_of(options)
    cases = selected_cases(session, options)
    tokens = list(dict.fromkeys(key for case in cases for key in case.tokens))
    rows: list[Row] = []
    for case in cases:
        record = session.book.read(case)
        state = {"id": case.id, "state": record.status if record else _NEVER}
        fixed = {"suite": case.suite, "benchmark": case.benchmark, "protocol": case.protocol, "model": case.model}
        rows.append({**state, **fixed, **{key: case.tokens.get(key) for key in tokens}})
    if options.format == "plain":
        rows = [{"id": row["id"], "state": "not run" if row["state"] == _NEVER else row["state"]} for row in rows]
    return _write(options.format, rows, header=False)


def _models(options: argparse.Namespace) -> int:
    session = session_of(options)
    rows = [_model(spec, session.settings.weights_dir) for spec in session.models.values()]
    if options.format == "plain":
        rows = [row if row["weights"] in {_HERE, _RANDOM} else {**row, "weights": "missing"} for row in rows]
    return _write(options.format, rows)


def _model(spec: ModelSpec, weights_dir: Path) -> Row:
    random = isinstance(spec.weights, RandomWeights)
    return {
        "name": spec.name,
        "group": spec.group,
        "parameters": spec.parameters,
        "licence": spec.licence,
        "weights": _RANDOM if random else _here(lambda: locate(spec, weights_dir)).removeprefix(f"{spec.name}: "),
    }


def _splits(options: argparse.Namespace) -> int:
    session = session_of(options)
    rows = [_split(session, split) for split in session.universe.splits]
    if options.format == "plain":
        rows = [{**row, "similarity": _three_decimals(row["similarity"])} for row in rows]
    return _write(options.format, rows)


def _split(session: Session, split: str) -> Row:
    concepts = session.levels.concepts(split)
    counts = session.levels.counts(split)
    images = [counts.get(wnid) for wnid in concepts]
    similarity = session.levels.mean_similarity(split)
    return {
        "split": split,
        "concepts": len(concepts),
        "images": None if None in images else sum(count or 0 for count in images),
        "similarity": None if similarity is None else round(similarity, 4),
        "data": _here(lambda: session.levels.require(split)),
    }


def _three_decimals(number: Plain) -> str | None:
    return f"{number:.3f}" if isinstance(number, float) else None


def _here(check: Callable[[], object]) -> str:
    """Say that what ``check`` asks for is here, or what is missing."""
    try:
        check()
    except MissingInput as missing:
        return str(missing)
    return _HERE


def _write(form: str, rows: Sequence[Row], *, header: bool = True) -> int:
    names = [*rows[0]]
    if form == "json":
        print(json.dumps(rows, indent=1))
    elif form == "csv":
        writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        cells = [["" if row[name] is None else str(row[name]) for name in names] for row in rows]
        print(tabulate(cells, names if header else (), tablefmt="plain", disable_numparse=True))
    sys.stdout.flush()  # a reader that has enough, such as head, is noticed here and not when Python ends
    return 0
