"""One run of the harness: its settings made real. What pytest and the command line share."""

from functools import cached_property
from pathlib import Path

from harness.case import Case
from harness.cog.cases import cases as cog_cases
from harness.cog.cases import shot_tokens
from harness.cog.concepts import ConceptLevels
from harness.cog.concepts import level_options
from harness.cog.concepts import similarities
from harness.cog.rankings import Ranking
from harness.cog.rankings import read_ranking
from harness.cog.rankings import save_ranking
from harness.cog.report import shipped_suites
from harness.cog.report import summary_lines
from harness.cog.report import write_report
from harness.cog.report_sections import Section
from harness.cog.run import probe_settings
from harness.cog.universe import Universe
from harness.cog.universe import load_universe
from harness.errors import ConfigError
from harness.errors import MissingInput
from harness.errors import nearest
from harness.features.options import Options
from harness.features.source import FeatureSource
from harness.features.source import require_device
from harness.features.source import torch_device
from harness.records.book import RecordBook
from harness.records.provenance import measured_here
from harness.records.record import CaseIdentity
from harness.records.record import Findings
from harness.records.record import Outcome
from harness.records.record import Record
from harness.records.record import Status
from harness.settings import Settings
from harness.store import Overwrite
from harness.store import Store
from harness.suite import Suite
from harness.suite import load_suite
from harness.suite import with_options
from harness.zoo.models import RESERVED
from harness.zoo.models import Models
from harness.zoo.models import load_models
from harness.zoo.models import reserved_token_problems
from harness.zoo.weights import locate

BENCHMARKS = {"cog": "ImageNet-CoG: concept generalization by WordNet distance"}
"""Markers of the benchmarks, with what they are."""


class Session:
    """The suite, models and cases that settings name, and what cases need to run.

    Nothing is read from disk but the suite, the universe and the models file, and no torch is imported, until a case
    asks for it.

    Args:
        settings: The options of the run.

    Raises:
        ConfigError: the suite, an option, the universe or the models file is not valid.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        overrides = settings.protocol
        if settings.universe is not None:
            overrides = (*overrides, f"cog.universe={settings.universe}")
        self.suite, self.options = with_options(load_suite(settings.suite), overrides)
        self.book = RecordBook(settings.reports_dir)

    def check(self) -> None:
        """Read universe and models file now, so that what is wrong in them is said before anything runs.

        Raises:
            ConfigError: one of them is not valid.
        """
        len(self.models)
        require_device(self.settings.device)
        probe_settings(self.suite.cog)
        level_options(self.suite.cog)
        self.universe.seen_concepts(self.suite.cog.seen)

    @cached_property
    def models(self) -> Models:
        """The entries of the models file, none of whose names makes ``-k`` ambiguous."""
        if not self.settings.models_file.exists():
            raise ConfigError(f"no models file at {self.settings.models_file}: say which with --models")
        models = load_models(self.settings.models_file)
        tokens = {*RESERVED, *self.universe.splits, *shot_tokens(self.suite.cog.shots)}
        if problems := reserved_token_problems(models, sorted(tokens)):
            raise ConfigError("\n".join(f"{self.settings.models_file}: {problem}" for problem in problems))
        return models

    @cached_property
    def universe(self) -> Universe:
        """The universe of concepts that CoG runs on."""
        return load_universe(self.suite.cog.universe)

    def cases(self, benchmark: str) -> list[Case]:
        """Return all cases of a benchmark, in the order of the models file."""
        if benchmark != "cog":
            raise ConfigError(f"no benchmark is called {benchmark!r}.{nearest(benchmark, BENCHMARKS)}")
        return cog_cases(self.suite, self._case_options, self.models, self.universe.splits)

    @property
    def _case_options(self) -> dict[str, str]:
        options = self.options["cog"]
        # By its own name: by its path, the same file elsewhere would make another case.
        return {**options, "universe": self.universe.identity} if "universe" in options else options

    def case(self, case_id: str) -> Case:
        """Return a case by its id without options, or by the bracketed part of its pytest id where that is unique.

        Raises:
            ConfigError: there is none, or several; the message has the nearest.
        """
        every = [case for benchmark in BENCHMARKS for case in self.cases(benchmark)]
        found = [case for case in every if case_id in {case.id.partition("?")[0], case.name}]
        if len(found) != 1:
            hint = nearest(case_id, [case.id for case in every])
            raise ConfigError(f"{case_id}: {len(found) or 'no'} cases of suite {self.suite.name} have this id.{hint}")
        return found[0]

    def require(self, case: Case) -> None:
        """Check that the data and the weights of a case are here, by asking for files alone.

        Raises:
            MissingInput: they are not; the message names the file wanted and how to get it.
        """
        if not self.settings.download:
            locate(self.models.find(case.model), self.settings.weights_dir)
        self.levels.require(case.tokens["split"])

    def reason_to_skip(self, case: Case) -> str | None:
        """Say why a case is not run: something is missing, or it is measured and is never to be overwritten."""
        if self.settings.overwrite is Overwrite.NEVER:
            record = self.book.read(case)
            if record is not None and record.measured:
                return f"{case.model} is measured already, and --overwrite never is set"
        try:
            self.require(case)
        except MissingInput as missing:
            return str(missing)
        return None

    @cached_property
    def store(self) -> Store:
        """The store of this run."""
        return Store(self.settings.cache_dir / "store", run_started=self.settings.run_started)

    @cached_property
    def levels(self) -> ConceptLevels:
        """The concepts, levels and images of CoG."""
        return ConceptLevels(self.universe, self.suite.cog, self.settings.data_root, self.settings.cache_dir)

    @cached_property
    def features(self) -> FeatureSource:
        """Features of any model on any image set."""
        options = Options(
            device=torch_device(self.settings.device),
            threads=self.suite.threads,
            overwrite=self.settings.overwrite_features,
        )
        return FeatureSource(self.models, self.store, self.settings.weights_dir, options, self.settings.download)

    def record(self, case: Case, status: Status, reason: str | None, outcome: Outcome) -> Record:
        """Write the record of a case and return it."""
        spec = self.models.find(case.model)
        model = {name: getattr(spec, name) for name in ("group", "training_data", "parameters", "may_have_seen")}
        record = Record(
            case=CaseIdentity.of(case),
            status=status,
            reason=reason,
            **{name: getattr(outcome, name) for name in Findings.model_fields},
            provenance=outcome.provenance or measured_here(),
        )
        record.details.update(model)
        self.book.write(record)
        return record

    def write_reports(self) -> list[Path]:
        """Write all reports from the records of the reports folder; return the files written."""
        return write_report(
            self.book.records(), self.settings.reports_dir, suites=self._suites(), similarities=self._ranking
        )

    def save_ranking(self) -> None:
        """Keep the ranking behind this run's levels beside its records, for reports that know nothing else."""
        save_ranking(self.book.root, self.suite.name, self._case_options, similarities(self.levels.levels))

    def summary(self) -> list[str]:
        """Return the tables of this suite as lines for the end of a run."""
        records = [record for record in self.book.records() if record.case.suite == self.suite.name]
        return summary_lines(records, self._suites())

    def _suites(self) -> dict[str, Suite]:
        own = load_suite(self.settings.suite)
        return {**shipped_suites(), own.name: own}

    def _ranking(self, section: Section) -> Ranking | None:
        return read_ranking(self.book.root, section.suite_name, section.options)
