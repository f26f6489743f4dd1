"""Where a network and its weights come from, as an entry of ``models.yaml`` says it. Imports no torch."""

import re
from typing import Annotated
from typing import Literal
from typing import TypeAlias
from urllib.parse import unquote
from urllib.parse import urlsplit

from pydantic import AfterValidator
from pydantic import BaseModel
from pydantic import ConfigDict
from pydantic import Field
from pydantic import JsonValue
from pydantic import model_validator


def _inside(path: str) -> str:
    if not path or path.startswith(("/", "~")) or "\\" in path or ".." in path.split("/"):
        raise ValueError("expected a relative path with forward slashes and without '..'")
    return path


def _like(pattern: str, words: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"expected {words}")
        return text

    return AfterValidator(check)


RelativePath = Annotated[str, AfterValidator(_inside)]
Address = Annotated[str, _like(r"https?://[^/\s]+/\S+", "an http:// or https:// address of a file")]
Sha256 = Annotated[str, _like(r"[0-9a-f]{8,64}", "8 to 64 lower-case hex digits")]
Commit = Annotated[str, _like(r"[0-9a-f]{40}", "the 40 hex digits of a commit")]
Repository = Annotated[str, _like(r"[\w.-]+/[\w.-]+", "owner/name")]
Factory = Annotated[str, _like(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", "package.module:factory")]


class Strict(BaseModel):
    """Frozen, and without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class TorchvisionArchitecture(Strict):
    """``torchvision.models.get_model(name, weights=None, **kwargs)``."""

    source: Literal["torchvision"]
    name: str
    kwargs: dict[str, JsonValue] = {}


class TimmArchitecture(Strict):
    """``timm.create_model(name, pretrained=False, **kwargs)``."""

    source: Literal["timm"]
    name: str
    kwargs: dict[str, JsonValue] = {}


class TorchHubArchitecture(Strict):
    """Entry point ``name`` of a GitHub repository's ``hubconf.py``, pinned to a commit since it runs the code there."""

    source: Literal["torch-hub"]
    repo: Repository
    commit: Commit
    name: str
    kwargs: dict[str, JsonValue] = {}


class HuggingFaceArchitecture(Strict):
    """``transformers`` class ``name`` built from the configuration in a repository of the Hugging Face hub."""

    source: Literal["hugging-face"]
    repo: Repository
    commit: Commit
    name: str = "AutoModel"
    kwargs: dict[str, JsonValue] = {}


class ImportArchitecture(Strict):
    """A function of the user's own, ``package.module:factory``, that returns a ``torch.nn.Module``."""

    source: Literal["import"]
    factory: Factory
    kwargs: dict[str, JsonValue] = {}


Architecture: TypeAlias = (
    TorchvisionArchitecture | TimmArchitecture | TorchHubArchitecture | HuggingFaceArchitecture | ImportArchitecture
)


class UrlWeights(Strict):
    """Weights fetched from ``url`` into the weights folder as ``file`` (default: the last part of the URL).

    ``sha256`` is the digest of that file or its first 8 or more hex digits; where it is left out, the first fetch
    records the digest. ``member`` names the file to take out of a zip archive that the URL leads to. ``manual`` says
    that the URL is a page for people: the file has to be put in place by hand.
    """

    source: Literal["url"]
    url: Address
    file: RelativePath = ""
    sha256: Sha256 | None = None
    member: RelativePath | None = None
    manual: bool = False

    @property
    def target(self) -> str:
        """Path of the weights below the weights folder."""
        if self.file:
            return self.file
        path = self.member or unquote(urlsplit(self.url).path)
        return path.rsplit("/", 1)[-1]

    @model_validator(mode="after")
    def _has_a_file_name(self) -> "UrlWeights":
        if not self.target:
            raise ValueError("the URL ends in '/': say under which 'file' the weights are kept")
        return self


class FileWeights(Strict):
    """A file of the user's own: an absolute path, ``~/...``, or relative to the weights folder."""

    source: Literal["file"]
    path: Annotated[str, Field(min_length=1)]
    sha256: Sha256 | None = None


class PackageWeights(Strict):
    """A file inside an installed Python package; ``distribution`` is what pip calls the package."""

    source: Literal["package"]
    package: Annotated[str, _like(r"[A-Za-z_]\w*", "the name a package is imported by")]
    file: RelativePath
    distribution: str | None = None
    sha256: Sha256 | None = None


class RandomWeights(Strict):
    """No file: the architecture's own random initialisation under ``seed``."""

    source: Literal["random"]
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)]


StoredWeights: TypeAlias = UrlWeights | FileWeights | PackageWeights
Weights: TypeAlias = StoredWeights | RandomWeights
