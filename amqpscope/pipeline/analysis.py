"""A run: sources, the plan for them, and the tables that come of it, as data frames or as a lake."""

import json
import pickle
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from amqpscope.input.key_log import tls_secrets
from amqpscope.layers.secrets import Secrets
from amqpscope.layers.tls.session import has_cryptography
from amqpscope.pipeline.appending import Addition, kept_files, unchanged
from amqpscope.pipeline.capture_set import capture_sets, fit_to_replace, not_there
from amqpscope.pipeline.failure import FilesChanged, PipelineError
from amqpscope.pipeline.files import whole
from amqpscope.pipeline.flow import BLOCKS, FilePiece
from amqpscope.pipeline.following import NOTHING_FOLLOWED, FollowedBatch
from amqpscope.pipeline.inputs import escaped, shown
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.parts import LakeFile
from amqpscope.pipeline.planner import CHAIN, SPLIT_OCTETS, TASK_OCTETS, Plan, make_plan, pool_plan
from amqpscope.pipeline.pool import Pool
from amqpscope.pipeline.references import AUTO
from amqpscope.pipeline.rows import RowTerms
from amqpscope.pipeline.runs import APPEND, REPLACE, REPLACE_DAY, RunNotes
from amqpscope.pipeline.schemas import TABLES
from amqpscope.pipeline.secrets import SecretsAddress, SecretsServer
from amqpscope.pipeline.session import cores as cores_of
from amqpscope.pipeline.session import own_address
from amqpscope.pipeline.tasks import (
    PIECES,
    Analyse,
    Chain,
    Correlate,
    Index,
    OneTable,
    Refer,
    StagedFiles,
    TaskOutput,
    WorkerTask,
    carrying,
)
from amqpscope.policy.policy import Policy
from amqpscope.protocols import known_dialect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Analysis", "AnalysisResult", "analyse"]


class AnalysisResult(NamedTuple):
    """What a run has written. counts: see `Rows`."""

    parts: list[LakeFile]
    counts: Counter[tuple[str, ...]]


def analyse(
    spark: "SparkSession | Pool",
    sources: Iterable[str],
    *,
    set_by: str = "directory",
    plan: str = "auto",
    split: int = SPLIT_OCTETS,
    shuffle: str = AUTO,
    tls_keylog: Iterable[str] = (),
    tls_key: Iterable[str] = (),
    cores: int | None = None,
) -> "Analysis":
    """Find the captures and make the plan; nothing is read yet but the beginning of each file.

    sources: files, directories, patterns, URLs (see `inputs`). set_by: what makes files one capture set.
    plan: auto, chain or flow. split: octets of a range of a large file. shuffle: what the flow
    plan shuffles, references to payload, payload, or auto: references to what is in local files.
    tls_keylog, tls_key: paths on this machine of key logs and private keys (as of `amqpscope.read`); workers
    ask this machine for secrets. cores: for how many the plan is made; None: as many as `spark` has.

    spark: a `pool.Pool` runs the same tasks without Spark, with the plan `chain` only; it writes lakes, and
    gives no data frames.
    """
    secrets = tls_secrets(list(tls_keylog), list(tls_key))
    sources = list(sources)
    sets = capture_sets(sources, set_by)
    if isinstance(spark, Pool):
        planned = pool_plan(sets, cores or spark.processes, plan)
    else:
        planned = make_plan(sets, cores or cores_of(spark), plan, split, shuffle)
    return Analysis(spark, planned, secrets, sources, set_by)


class Analysis:
    """Captures and the plan for them. secrets: what TLS is decrypted with, beside what captures have.

    sources, set_by: what the captures come from, for the table `runs`.
    """

    def __init__(
        self,
        spark: "SparkSession | Pool",
        plan: Plan,
        secrets: Secrets | None = None,
        sources: Iterable[str] = (),
        set_by: str = "directory",
    ) -> None:
        self._pool = spark if isinstance(spark, Pool) else None
        self._session = None if isinstance(spark, Pool) else spark
        self.plan = plan
        self._sources = tuple(escaped(shown(source)) for source in sources)
        self._set_by = set_by
        self._lake: Lake | None = None
        self._secrets = secrets
        self._server: SecretsServer | None = None

    @property
    def spark(self) -> "SparkSession":
        """The session. PipelineError if there is only a pool."""
        if self._session is None:
            raise PipelineError("a pool has no data frames: write a lake, or give a Spark session")
        return self._session

    def table(self, name: str, with_json: bool = False) -> "DataFrame":
        """One table. Each action on it reads the captures: what is used often is to be written, or cached.

        with_json: see `write`.
        """
        if name not in TABLES:
            raise PipelineError(f"{name}: there is no such table; the tables are {', '.join(TABLES)}")
        return self._run(OneTable(name, RowTerms(with_json=with_json)))

    def write(
        self,
        path: str | Lake,
        tables: Iterable[str] = tuple(TABLES),
        tally: Any = None,
        policy: Policy | None = None,
        allow_missing: bool = False,
        dialect: str = "",
        with_json: bool = False,
        added: Addition | None = None,
        tags: Mapping[str, str] = MappingProxyType({}),
        followed: FollowedBatch = NOTHING_FOLLOWED,
    ) -> AnalysisResult:
        """Tables into a lake, in one pass. At its end they replace what was in the lake, at once.

        path: of the lake, or the lake itself, whose lease may be held (`Lake.hold`).

        added: the rows are added to those of the lake, but for those of `added.replaced`, which go. The plan
        has to be for `added.sets`.

        PipelineError, and nothing is replaced, if no source can be read, or any is missing; allow_missing:
        only if none can be read.

        tables: those that are wanted, beside `files`. Without `findings` and `diagnoses` nothing is judged.
        tally: see `amqpscope.pipeline.tally`. policy: what findings and diagnoses are held to
        (`policy.load_policy`); without it no configuration holds. dialect: of AMQP 1.0 that all peers speak,
        `final` or `draft2011`, "" to find out by the frames. with_json: the table `frames` has the fields of
        all frames, and all messages, as JSON; otherwise only of frames whose fields have no columns. tags:
        columns of all tables, and the text that the rows of this run have in them (`pipeline.tags`).
        followed: capture sets whose rows come of processes that follow them; not in the plan.
        """
        unknown = sorted(set(tables) - set(TABLES))
        if unknown:
            raise PipelineError(f"{unknown[0]}: there is no such table; the tables are {', '.join(TABLES)}")
        every = added is not None and added.every
        if not every:
            fit_to_replace(list(self.plan.sets), allow_missing)
        wanted = tuple(name for name in TABLES if name in {"files", *tables})
        terms = RowTerms(policy or Policy(), known_dialect(dialect), with_json=with_json)
        lake = path if isinstance(path, Lake) else Lake(path)
        self._lake = lake
        opened = followed.gone
        run, staging = lake.begin()
        try:
            followed.begin(staging, run, wanted, terms, tags)
            outlet = StagedFiles(staging, run, wanted, tally, terms, tags)
            report = self._report(outlet) if self.plan.tasks else []
            done = followed.end()
        except BaseException as error:
            lake.abandon()
            raise _explained(error) from error
        finally:
            self._close()
        parts = []
        counts: Counter[tuple[str, ...]] = Counter()
        for row in report:
            if row.kind == "count":
                counts[tuple(json.loads(row.name))] += row.rows
            else:
                parts.append(LakeFile(row.kind, row.name, row.rows, row.octets, row.first_set, row.last_set))
        for one in done:
            parts += one.final + one.open
            counts += one.counts
            if followed.earlier:
                counts += one.earlier
        if added is not None:
            added = added._replace(replaced=added.replaced | followed.anew, gone=added.gone | opened)
        found = [file for one in (*self.plan.sets, *(of.one for of in followed.sets)) for file in one.files]
        gone = counts["missing",] - sum(not_there(file) for file in found)
        if not every and not counts["file", "ok"] + counts["file", "partial"]:
            lake.abandon()
            raise PipelineError(f"{lake.name}: nothing is replaced: none of the files could be read")
        if gone > 0 and added is not None:
            # What is recorded of them would replace their rows, and a look later they may have moved.
            lake.abandon()
            raise FilesChanged(f"{lake.name}: nothing is added: {gone} of the files vanished meanwhile")
        if gone > 0 and not allow_missing:
            lake.abandon()
            raise FilesChanged(
                f"{lake.name}: nothing is replaced: {gone} of the files were not where the workers look; "
                "--allow-missing continues without these files"
            )
        shaping: dict[str, Any] = {
            "json": with_json,
            "dialect": dialect or None,
            "spec": terms.policy.spec,
            "profile": terms.policy.profile,
        }
        kind = REPLACE if added is None else APPEND
        if tags:
            shaping["tags"] = dict(tags)
        if added is not None and added.day is not None:
            if not any(f"/date={added.day}/" in part.path for part in parts):
                lake.abandon()
                raise PipelineError(
                    f"{lake.name}: nothing is replaced: the captures have no rows of {added.day}"
                )
            kind = REPLACE_DAY
            shaping["replace"] = f"date={added.day}"
        notes = self._notes(kind, wanted, shaping, followed)
        if added is not None:
            notes = notes._replace(changed=added.changed)
        kept: dict[str, list[LakeFile]] = {}
        rewritten: list[LakeFile] = []
        if added is not None:
            try:
                if lake.base() != added.base:
                    raise PipelineError(f"{lake.name}: another run has written to this lake")
                if added.base:
                    kept, rewritten = kept_files(lake, added, staging, f"{run}-kept")
                if not unchanged([*self.plan.sets, *(of.news for of in followed.sets)]):
                    raise FilesChanged(f"{lake.name}: nothing is added: files were overwritten meanwhile")
                followed.keep()
            except BaseException:
                lake.abandon()
                raise
        lake.commit(run, [*parts, *rewritten], notes, kept)
        return AnalysisResult(parts, counts)

    def _notes(
        self, kind: str, tables: tuple[str, ...], shaping: dict[str, Any], followed: FollowedBatch
    ) -> RunNotes:
        """What the table `runs` has about the run. shaping: options that shape the rows."""
        read = [file for one in self.plan.sets for file in one.files if file.trouble is None]
        options = {
            "engine": "spark" if self._pool is None else "pool",
            "plan": self.plan.kind,
            "set-by": self._set_by,
            "tables": tables,
            **shaping,
        }
        files = len(read) + sum(one.files for one in followed.sets)
        octets = sum(file.size for file in read) + sum(one.octets for one in followed.sets)
        return RunNotes(kind, tables, self._sources, options, files, octets)

    def clean_up(self) -> None:
        """After `write` has failed and the session was stopped: delete what its workers wrote even then."""
        if self._lake is not None:
            self._lake.abandon()

    def _report(self, outlet: TaskOutput) -> list[Any]:
        """What the tasks report (`tasks.REPORT`)."""
        if self._pool is None:
            return list(self._run(outlet).collect())
        outlet.terms = outlet.terms._replace(secrets=self._asked())
        return list(self._pool.report(Chain(self.plan, outlet), len(self.plan.tasks)))

    def _run(self, outlet: TaskOutput) -> "DataFrame":
        plan = self.plan
        secrets = self._asked()
        outlet.terms = outlet.terms._replace(secrets=secrets)
        if plan.kind == CHAIN:
            return self._each(len(plan.tasks), Chain(plan, outlet), outlet.schema)
        tasks = self._pieces()
        blocks = self._each(len(tasks), Refer(plan, tasks, secrets), BLOCKS)
        by_connection = blocks.repartition(plan.partitions, "capture_set", "pair")
        in_order = by_connection.sortWithinPartitions("capture_set", "pair", "packet")
        # Blocks are large: a batch of as many rows as Spark takes otherwise would be gigabytes.
        self.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "64")
        analyse_them = Analyse(plan.sets, outlet)
        if not {"findings", "diagnoses"} & set(outlet.tables):
            return _by_workers(in_order, analyse_them, outlet.schema)
        analysed = _by_workers(in_order, analyse_them, carrying(outlet.schema))
        by_set = analysed.repartition(plan.partitions, "set_number").sortWithinPartitions("set_number")
        return _by_workers(by_set, Correlate(plan.sets, outlet), outlet.schema)

    def _asked(self) -> SecretsAddress | None:
        """Where workers ask for secrets; None if nobody has any."""
        if self._secrets is None and (self.plan.kind == CHAIN or not has_cryptography()):
            return None
        if self._server is None:
            host = "127.0.0.1" if self._session is None else own_address(self._session)
            self._server = SecretsServer(self._secrets, host)
        return self._server.address

    def _close(self) -> None:
        """No worker asks for secrets any more."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _pieces(self) -> list[list[FilePiece]]:
        """The files and ranges of files for each task; large files are gone through for it, in parallel."""
        plan = self.plan
        pieces: list[FilePiece] = []
        large: list[tuple[int, int]] = []
        for set_number, one in enumerate(plan.sets):
            for position, file in enumerate(one.files):
                if file.size > plan.split and not file.compression and file.trouble is None:
                    large.append((set_number, position))
                else:
                    pieces.append(FilePiece(set_number, position, 0, whole(file)))
        if large:
            found = self._each(len(large), Index(plan.sets, large, plan.split), PIECES).collect()
            # Made by our own workers, of our own types.
            pieces += [pickle.loads(bytes(row.piece)) for row in found]  # noqa: S301
        pieces.sort(key=lambda piece: (piece.part.start - piece.part.end, piece[:3]))
        tasks: list[list[FilePiece]] = []
        octets = TASK_OCTETS
        for piece in pieces:
            size = piece.part.end - piece.part.start
            if octets + size > TASK_OCTETS or len(tasks[-1]) >= _PIECES_OF_A_TASK:
                tasks.append([])
                octets = 0
            tasks[-1].append(piece)
            octets += size
        return tasks

    def _each(self, tasks: int, what: Any, schema: pa.Schema) -> "DataFrame":
        """`what` done by so many tasks, each given its number."""
        numbers = self.spark.range(0, tasks, 1, max(tasks, 1))
        return _by_workers(numbers, what, schema)


_PIECES_OF_A_TASK = 256


def _by_workers(frame: "DataFrame", task: Any, schema: pa.Schema) -> "DataFrame":
    """What comes of a task that is done for each partition of a data frame."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return frame.mapInArrow(WorkerTask(task), from_arrow_schema(schema))


def _explained(error: BaseException) -> BaseException:
    """An error of a worker as one line, if its cause is known; otherwise as it is."""
    text = str(error)
    ours = re.search(r"amqpscope\.pipeline\.failure\.PipelineError: (.*)", text)
    if ours:
        return PipelineError(ours.group(1))
    missing = re.search(r"No module named '(amqpscope|dissectors|librt|pyarrow|pandas|numpy)\b", text)
    if missing:
        return PipelineError(
            f"the workers have no {missing.group(1)}: install amqpscope[spark] where they run, "
            "or send it along (see docs/guides/spark.md)"
        )
    program = re.search(r'Cannot run program "([^"]*)"', text)
    if program:
        return PipelineError(
            f"the workers have no Python at {program.group(1)}: "
            "set PYSPARK_PYTHON to the path of Python on the workers"
        )
    if type(error).__module__.partition(".")[0] in ("pyspark", "py4j", "grpc"):
        # The worker's own error is the last of its traceback; what the JVM says of it follows.
        reported = text.partition("\n\tat ")[0].strip()
        lines = re.findall(r"^\s*((?:\w+\.)*\w*(?:Error|Exception)\b: .*)$", reported, re.M)
        return PipelineError(f"Spark: {(lines or reported.splitlines() or [type(error).__name__])[-1]}")
    return error
