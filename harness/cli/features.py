"""``harness features``: features to and from other programs."""

import argparse
from pathlib import Path

from harness.cli.common import Commands
from harness.cli.common import add_settings
from harness.cli.common import session_of
from harness.features.exchange import export
from harness.features.exchange import import_
from harness.features.matrix import FEATURES
from harness.features.matrix import kept_labels

_RUN = ("suite", "models_file", "data_root", "cache_dir", "device", "universe", "protocol", "download")


def add_commands(commands: Commands) -> None:
    """Declare the commands."""
    description = "export features of a model on a split, or import some"
    actions = commands.add_parser("features", help=description, description=description).add_subparsers(
        metavar="ACTION", required=True
    )
    parser = actions.add_parser("export", help="write features.npy, ids.txt and labels.npy, or X_Y.pth (naver/cog)")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("split", metavar="SPLIT", help="for example L1")
    parser.add_argument("part", choices=("train", "test"))
    parser.add_argument("target", type=Path, metavar="TARGET", help="a folder, or a file *.pth")
    add_settings(parser, *_RUN)
    parser.set_defaults(run=_export)
    description = (
        "check features of another program (finite, a row for each id and label, no code in the file), keep them in "
        "the store as float32 under the digest of the source, and print where their features.npy can be mapped from"
    )
    parser = actions.add_parser("import", help="check and store features of another program", description=description)
    parser.add_argument(
        "source", type=Path, metavar="SOURCE", help="a folder with features.npy and ids.txt, or X_Y.pth"
    )
    add_settings(parser, "cache_dir")
    parser.set_defaults(run=_import)


def _export(options: argparse.Namespace) -> int:
    session = session_of(options)
    split = session.levels.split(options.split)
    images, labels = (split.train, split.train_labels) if options.part == "train" else (split.test, split.test_labels)
    protocol = session.suite.cog
    matrix = session.features(
        options.model,
        images,
        resize=protocol.resize,
        precision=protocol.feature_precision,
        drop_unreadable=protocol.unreadable == "drop",
    )
    export(matrix, options.target, kept_labels(labels, images, matrix))
    rows, dim = matrix.features.shape
    lost = f"; {len(matrix.unreadable)} of {len(images)} images cannot be read" if matrix.unreadable else ""
    print(f"{rows} x {dim} features written to {options.target}{lost}")
    return 0


def _import(options: argparse.Namespace) -> int:
    session = session_of(options)
    matrix = import_(session.store, options.source)
    rows, dim = matrix.features.shape
    print(f"{rows} x {dim} features stored as {matrix.folder / FEATURES}")
    return 0
