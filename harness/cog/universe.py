"""A universe: its concepts, which of them are seen, how its levels are made and where its images lie."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from typing import Literal

from pydantic import BaseModel
from pydantic import BeforeValidator
from pydantic import ConfigDict
from pydantic import Field
from pydantic import PlainSerializer
from pydantic import ValidationInfo
from pydantic import model_validator

from harness import data
from harness.cog.universe_lists import read_table
from harness.cog.universe_lists import whole_number
from harness.digest import digest_of
from harness.digest import file_digest
from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.errors import nearest
from harness.yamlfile import validate

_STRICT = ConfigDict(frozen=True, extra="forbid")
_EMBEDDED = "embedded:"

Wnid = Annotated[str, Field(pattern=r"^n\d{8}$")]


def _find(name: object, info: ValidationInfo) -> object:
    if not isinstance(name, str):
        return name
    if not name.startswith(_EMBEDDED):
        path = Path((info.context or {}).get("folder", "."), name)
        if not path.is_file():
            raise ValueError(f"no such file: {path}")
        return path
    try:
        return data.path(name.removeprefix(_EMBEDDED))
    except FileNotFoundError as error:
        raise ValueError(str(error)) from error


File = Annotated[Path, BeforeValidator(_find), PlainSerializer(file_digest, return_type=str, when_used="json")]
"""A file beside the universe file, or ``embedded:`` and its name among the embedded data; in JSON, its SHA-256."""


class Families(BaseModel):
    """Test images are those by the artists of whole families, since artists of one family share drawings."""

    model_config = _STRICT

    rule: Literal["families"]
    test: tuple[str, ...] = Field(min_length=1)
    """The families held out."""
    artists: Mapping[str, str]
    """Family by artist. An image is named ``<artist>.<suffix>`` or ``<artist>-2.<suffix>``."""

    @model_validator(mode="after")
    def _known(self) -> "Families":
        families = sorted(set(self.artists.values()))
        for family in self.test:
            if family not in families:
                raise ValueError(f"no artist belongs to family {family!r}.{nearest(family, families)}")
        return self


class Listed(BaseModel):
    """Test images are published by name."""

    model_config = _STRICT

    rule: Literal["listed"]
    file: File
    """Columns ``wnid`` and ``numbers``, separated by spaces: an image is named ``<wnid>_<number>.JPEG``."""


class Random(BaseModel):
    """Test images are drawn: a fixed number of each concept."""

    model_config = _STRICT

    rule: Literal["random"]
    count: int = Field(default=50, ge=1)
    seed: int = 22


class Folder(BaseModel):
    """Test images lie in a place of their own."""

    model_config = _STRICT

    rule: Literal["folder"]
    root: str
    """As ``Images.root``."""


class Images(BaseModel):
    """Where the images of a set of concepts lie and which of them are for testing; the rest is for training."""

    model_config = _STRICT

    root: str
    """Class folders, class tars or a zip: ``embedded:`` and a name, or a path, relative to the data root."""
    test: Families | Listed | Random | Folder = Field(discriminator="rule")
    train_cap: int | None = Field(default=None, ge=1)
    """The most training images of a concept, after the test images are set apart."""


class SeenSplit(BaseModel):
    """The split of seen concepts, which is probed beside the levels."""

    model_config = _STRICT

    name: str = Field(pattern=r"^[A-Za-z0-9]+$")
    concepts: File | None = None
    """The concepts probed; None: the default list of seen concepts."""
    images: Images | None = None
    """None: the images of the universe."""

    @model_validator(mode="after")
    def _not_a_level(self) -> "SeenSplit":
        if self.name[:1] in "lL" and self.name[1:].isdecimal():
            raise ValueError(f"{self.name!r} is the name of a level")
        return self


class Filters(BaseModel):
    """Which concepts may be in a level. Concepts that are seen never are."""

    model_config = _STRICT

    min_images: int = Field(default=0, ge=0)
    ancestors_of_seen: bool = False
    """Whether concepts above a seen one stay."""
    inner_nodes: bool = False
    """Whether concepts stay that have others of the universe below them."""
    drop_subtrees: tuple[Wnid, ...] = ()
    """Concepts that are dropped with all below them."""


class LevelRule(BaseModel):
    """How many levels there are, of how many concepts each."""

    model_config = _STRICT

    number: int = Field(default=5, ge=1)
    size: int = Field(ge=1)
    published: File | None = None
    """The canonical levels: columns ``level`` (empty between levels) and ``wnid``, and if known ``similarity`` and
    ``nearest_seen``."""


class Universe(BaseModel):
    """One universe file."""

    model_config = _STRICT

    name: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    title: str
    note: str = ""
    """A sentence that stands wherever the universe's numbers are shown."""
    concepts: File
    images_column: str = "images"
    """The column of ``concepts`` that holds the number of images of each."""
    counted_with: tuple[File, ...] = ()
    """Concepts that belong to the graph in which information content is counted, beside the seen and the universe's."""
    seen: Mapping[str, File] = Field(min_length=1)
    """Lists of seen concepts by name, which levels are ranked against; the first is the default."""
    never_unseen: File | None = None
    """Further concepts that are in no level, whichever list of seen concepts is taken."""
    dropped: Mapping[Wnid, str] = {}
    """Concepts that are in no split, and why."""
    exclusions: File | None = None
    """Concepts left out of the levels by hand: columns ``wnid`` and, if some are a guess, ``certain`` (1 or 0)."""
    filters: Filters = Filters()
    levels: LevelRule
    seen_split: SeenSplit
    images: Images

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits: the seen concepts, then the levels from near to far.

        All levels have as many digits as the last, ``L01`` to ``L10``, since ``pytest -k L1`` matches parts of words.
        """
        number = self.levels.number
        return (self.seen_split.name, *(f"L{level:0{len(str(number))}}" for level in range(1, number + 1)))

    @property
    def identity(self) -> str:
        """What tells records of this universe from those of another: the name of a shipped one, else ``name@digest``.

        The digest (8 hex digits) is over all fields and the content of every list. Where a list lies does not count;
        the root of the images does, as it is written in the file.
        """
        if self.name in universe_names():
            return self.name
        # The first list of seen concepts is the default, so their order counts.
        return f"{self.name}@{digest_of([self.model_dump(mode='json'), [*self.seen]])[:8]}"

    def image_counts(self) -> dict[str, int | None]:
        """Return the number of images of every concept by WNID; None where the list gives no numbers."""
        table = read_table(self.concepts)
        return {
            wnid: whole_number(self.concepts, cells, self.images_column) if self.images_column in cells else None
            for wnid, cells in table.items()
            if wnid not in self.dropped
        }

    def seen_concepts(self, name: str | None = None) -> tuple[str, ...]:
        """Return a list of seen concepts by its name, or the default one.

        Raises:
            ConfigError: there is no such list.
        """
        names = list(self.seen)
        if name is not None and name not in names:
            raise ConfigError(f"seen={name}: universe {self.name} has {', '.join(names)}.{nearest(name, names)}")
        return tuple(read_table(self.seen[name or names[0]]))

    def probed_seen_concepts(self) -> tuple[str, ...]:
        """Return the concepts of the seen split, by WNID."""
        return tuple(sorted(read_table(self.seen_split.concepts) if self.seen_split.concepts else self.seen_concepts()))


def resolve_root(root: str, data_root: Path | None) -> Path:
    """Return the place that ``Images.root`` names.

    Raises:
        MissingInput: it is relative, and there is no data root.
    """
    if root.startswith(_EMBEDDED):
        return data.path(root.removeprefix(_EMBEDDED))
    if data_root is None and not Path(root).expanduser().is_absolute():
        raise MissingInput(f"images {root}: say with --data-root in which folder they lie")
    return (data_root or Path()) / Path(root).expanduser()


def universe_names() -> list[str]:
    """Return the names of the shipped universes."""
    return sorted(path.stem for path in data.path("universes").glob("*.yaml"))


def load_universe(name_or_file: str) -> Universe:
    """Read a universe by its shipped name or from a YAML file.

    Raises:
        ConfigError: there is no such universe, or the file is not a valid one or takes the name of a shipped one.
    """
    names = universe_names()
    path = data.path(f"universes/{name_or_file}.yaml") if name_or_file in names else Path(name_or_file)
    if not path.is_file():
        hint = nearest(name_or_file, names)
        raise ConfigError(f"universe {name_or_file}: neither a file nor a shipped one ({', '.join(names)}).{hint}")
    universe = validate(Universe, path, context={"folder": path.parent})
    if universe.name in names and path.resolve() != data.path(f"universes/{universe.name}.yaml").resolve():
        raise ConfigError(f"{path}: {universe.name} is the name of a shipped universe; give yours another")
    return universe
