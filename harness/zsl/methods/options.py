"""What every method is: a frozen dataclass whose fields are its options, each a switch with a default."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import fields
from typing import ClassVar
from typing import Literal
from typing import get_args
from typing import get_origin
from typing import get_type_hints

from harness.errors import ConfigError
from harness.errors import nearest
from harness.zsl.problem import Floats
from harness.zsl.problem import Labels
from harness.zsl.problem import Model
from harness.zsl.problem import Value


@dataclass(frozen=True)
class Options:
    """The part that all methods share: name, options and library; a subclass is a method."""

    name: ClassVar[str]
    needs: ClassVar[str] = "numpy"
    generalized: ClassVar[tuple[str, ...]] = ()
    widens: ClassVar[tuple[str, ...]] = ()

    @property
    def options(self) -> Mapping[str, Value]:
        """Every option with its value."""
        return asdict(self)

    def scores(self, models: Sequence[Model], features: Floats, classes: Labels, /) -> Iterator[Floats]:
        """Yield the scores of each model on the same images, float64 [m, c]."""
        for model in models:
            yield model.scores(features, classes)


def parse_options(kind: type[Options], given: Mapping[str, Value]) -> dict[str, Value]:
    """Return options in the types of the fields of a method, text such as "0.1" converted.

    Raises:
        ConfigError: an option or a value that the method does not have.
    """
    hints = get_type_hints(kind)
    known = [field.name for field in fields(kind)]
    parsed: dict[str, Value] = {}
    for key, value in given.items():
        if key not in known:
            raise ConfigError(f"{kind.name} has no option {key!r}; it has {', '.join(known)}.{nearest(key, known)}")
        parsed[key] = _parse(f"{kind.name}: option {key}", value, hints[key])
    return parsed


def _parse(what: str, value: Value, hint: type) -> Value:
    if get_origin(hint) is Literal:
        allowed = [str(name) for name in get_args(hint)]
        if value not in allowed:
            raise ConfigError(
                f"{what} is {value!r}, expected one of {', '.join(allowed)}{nearest(str(value), allowed)}"
            )
        return value
    try:
        return float(value) if hint is float else int(value)
    except ValueError:
        raise ConfigError(f"{what} is {value!r}, expected a number") from None
