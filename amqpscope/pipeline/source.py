"""The data source `amqpscope` for Spark: `spark.read.format("amqpscope").load(PATH)`.

PATH may be a list. Options: `table`, one of the tables or `segments` (default `frames`); `setBy`, `profile`,
`spec`, `dialect` and `json` (true or false) as of the command; `tlsKeylog` and `tlsKey`, a path or a list of
paths as JSON, of files that the workers read. A schema that is given chooses columns. The chain plan reads
it (`plan` may be `auto` or `chain`): a partition is one or more capture sets. Every action reads the captures
again.

Filters. A reader that takes a filter (`pushFilters`) makes no rows that the query drops. Up to Spark 4.3 all
queries of a data frame have one reader, so a query would lack the rows that an earlier one had dropped: two
filters of one data frame, a union, a join with itself. So only `FilteringSource` takes filters, and
`register` chooses it if Spark gives each query a reader of its own and lets sources take filters.

`spark.readStream` gives the tables `segments` and `findings` of captures that are added or grow (`stream`).
"""

import ipaddress
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, In, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.errors import FilterError
from amqpscope.input.garbage import calm_collector
from amqpscope.input.key_log import tls_secrets
from amqpscope.pipeline.capture_set import CaptureSet, capture_sets, fit_to_read
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.columns import without_dictionaries
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.files import Range, RangeReader, whole
from amqpscope.pipeline.inputs import CaptureFile, escaped, is_remote, plain
from amqpscope.pipeline.packets import split
from amqpscope.pipeline.planner import CHAIN, make_plan
from amqpscope.pipeline.references import AUTO
from amqpscope.pipeline.rows import BATCH_ROWS, Rows, RowTerms
from amqpscope.pipeline.schemas import SEGMENTS, TABLES, TableSchema
from amqpscope.pipeline.secrets import SecretsAddress, SecretsFiles, SecretsServer
from amqpscope.pipeline.session import over_connect, own_address
from amqpscope.policy.policy import Given, Policy
from amqpscope.protocols import known_dialect
from dissectors.wire import u16

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["AmqpscopeSource", "FilteringSource", "register", "segments_of", "with_secrets"]

_PARTITIONS_AT_LEAST = 16
"""Partitions that are made if there are so many capture sets. How many cores there are is not reported."""


_servers: list[SecretsServer] = []
"""The one of this process, if any; it answers until it ends, or until `register` is called again."""


def register(spark: "SparkSession", *, tls_keylog: Iterable[str] = (), tls_key: Iterable[str] = ()) -> None:
    """Let `spark` know the format `amqpscope`.

    tls_keylog, tls_key: paths on this machine of key logs and private keys: workers ask this process for the
    secrets of each connection that they meet. PipelineError if they cannot be read, or `spark` is a session
    of Spark Connect, whose workers may not reach this process.
    """
    try:
        secrets = tls_secrets(list(tls_keylog), list(tls_key))
    except FilterError as error:
        raise PipelineError(str(error)) from error
    source = FilteringSource if _takes_filters(spark) else AmqpscopeSource
    if secrets is None:
        _stop_servers()
        spark.dataSource.register(source)
        return
    if over_connect(spark):
        raise PipelineError(
            "register: over Spark Connect, name the files on the server by the options tlsKeylog and tlsKey"
        )
    _stop_servers()
    server = SecretsServer(secrets, own_address(spark))
    _servers.append(server)

    class WithSecrets(source):  # type: ignore[misc, valid-type]
        """Knows where the secrets are asked for. It is not to be found by name, so it travels as it is."""

        secrets = server.address

    spark.dataSource.register(WithSecrets)


def _takes_filters(spark: "SparkSession") -> bool:
    """Whether readers may take filters: each query has its own since readers can take limits, too."""
    allowed = str(spark.conf.get("spark.sql.python.filterPushdown.enabled", None)).lower() == "true"
    return allowed and hasattr(DataSourceReader, "pushLimit")


def _stop_servers() -> None:
    """Nobody asks for the secrets of an earlier `register` any more."""
    while _servers:
        _servers.pop().close()


class AmqpscopeSource(DataSource):  # type: ignore[misc]
    """The tables of captures."""

    secrets: ClassVar[SecretsAddress | None] = None
    """Where the secrets of TLS are asked for, unless options name files."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "amqpscope"

    def schema(self) -> Any:
        """The columns of the table asked for."""
        return from_arrow_schema(_table(self._option("table", "frames")).schema)

    def reader(self, schema: Any) -> "CaptureSetReader":
        """What reads it. schema: the columns that are wanted, with the types that they have."""
        return CaptureSetReader(*self._asked(schema, _SHOWN))

    def streamReader(self, schema: Any) -> Any:  # noqa: N802
        """What reads it as a stream. schema: see `reader`."""
        try:
            from amqpscope.pipeline.stream import CaptureStreamReader, StreamTerms
        except ImportError as error:
            raise PipelineError(f"readStream: needs Spark 4.2 or newer ({error})") from error

        how = StreamTerms(
            self._most("maxFilesPerTrigger"),
            self._most("maxBytesPerTrigger"),
            self._option("statelocation", ""),
            self._yes("failOnDataLoss", "true"),
        )
        return CaptureStreamReader(*self._asked(schema, (*_SHOWN, *_OF_STREAMS)), how)

    def _asked(
        self, schema: Any, options: tuple[str, ...]
    ) -> tuple[list[str], str, list[str], str, RowTerms]:
        """Sources, table, columns, what makes files one capture set, and terms. options: that there are."""
        unknown = sorted(set(self.options) - {"path", "paths", *(name.lower() for name in options)})
        if unknown:
            raise PipelineError(f"option {unknown[0]}: is unknown; the options are {', '.join(options)}")
        path, paths = self.options.get("path"), self.options.get("paths")
        sources = json.loads(paths) if paths else [path]
        if not all(sources):
            raise PipelineError(
                "load(PATH): PATH must be a file, directory, pattern or URL, or a list of them"
            )
        table = _table(self._option("table", "frames"))
        known = {field.name: field.dataType for field in from_arrow_schema(table.schema)}
        for field in schema:
            own = known.get(field.name)
            if own != field.dataType:
                has = f"it of type {own.simpleString()}" if own else "no such column"
                asked = f"column {field.name} of type {field.dataType.simpleString()}"
                raise PipelineError(f"{asked}: the table {table.name} has {has}")
        given = Given()
        given.profile, given.spec = self.options.get("profile"), self.options.get("spec")
        files = SecretsFiles(self._paths("tlsKeylog"), self._paths("tlsKey"))
        terms = RowTerms(
            Policy(None, given),
            known_dialect(self._option("dialect", "")),
            files if any(files) else self.secrets,
            self._yes("json", "false"),
        )
        plan = self._option("plan", AUTO)
        if plan not in (AUTO, CHAIN):
            raise PipelineError(
                f"option plan: must be {AUTO} or {CHAIN}, not {plan}: a data source cannot shuffle, "
                "amqpscope.pipeline.analyse can"
            )
        columns = [field.name for field in schema]
        return sources, table.name, columns, self._option("setby", "directory"), terms

    def _option(self, name: str, usual: str) -> str:
        return str(self.options.get(name, usual))

    def _paths(self, name: str) -> tuple[str, ...]:
        given = self._option(name.lower(), "")
        paths: object = [given] if given else []
        if given.startswith("["):
            try:
                paths = json.loads(given)
            except ValueError:
                paths = None
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise PipelineError(f"option {name}: must be a path, or a list of paths as JSON")
        found = tuple(plain(path) for path in paths)
        for path in found:
            if is_remote(path):
                raise PipelineError(f"option {name}: {path}: must be a path of the worker's file system")
        return found

    def _most(self, name: str) -> int:
        """A number of at least 1; 0 if the option is not given."""
        given = self._option(name.lower(), "")
        if given and not (given.isascii() and given.isdigit() and int(given)):
            raise PipelineError(f"option {name}: must be a number of at least 1, not {given}")
        return int(given or 0)

    def _yes(self, name: str, usual: str) -> bool:
        given = self._option(name.lower(), usual).lower()
        if given not in ("true", "false"):
            raise PipelineError(f"option {name}: must be true or false, not {given}")
        return given == "true"


class FilteringSource(AmqpscopeSource):
    """The same, for a Spark that gives each query a reader of its own; others would lack rows."""

    def reader(self, schema: Any) -> "FilteringReader":
        """What reads it; see `AmqpscopeSource.reader`."""
        return FilteringReader(*self._asked(schema, _SHOWN))


_SHOWN = ("table", "setBy", "plan", "profile", "spec", "dialect", "json", "tlsKeylog", "tlsKey")
_OF_STREAMS = ("maxFilesPerTrigger", "maxBytesPerTrigger", "stateLocation", "failOnDataLoss")


def _table(name: str) -> TableSchema:
    if name == SEGMENTS.name:
        return SEGMENTS
    if name not in TABLES:
        raise PipelineError(
            f"{name}: there is no such table; the tables are {', '.join((*TABLES, SEGMENTS.name))}"
        )
    return TABLES[name]


class _Sets(InputPartition):  # type: ignore[misc]
    """Capture sets of one partition."""

    def __init__(self, sets: list[CaptureSet]) -> None:
        self.sets = sets


class CaptureSetReader(DataSourceReader):  # type: ignore[misc]
    """Reads one table."""

    def __init__(
        self, sources: list[str], table: str, columns: list[str], set_by: str, terms: RowTerms
    ) -> None:
        self._sources = sources
        self._table = table
        self._columns = columns
        self._set_by = set_by
        self._terms = terms

    def partitions(self) -> list[Any]:
        """One or more capture sets each. PipelineError if a path is missing, or nothing can be read."""
        sets = capture_sets(self._sources, self._set_by)
        fit_to_read(sets)
        plan = make_plan(sets, _PARTITIONS_AT_LEAST, CHAIN)
        return [_Sets([plan.sets[number] for number in task]) for task in plan.tasks]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a partition."""
        calm_collector()
        batches = self._segments(partition) if self._table == SEGMENTS.name else self._rows(partition)
        for batch in batches:
            for column, values in self._terms.only:
                batch = batch.filter(pc.is_in(batch.column(column), pa.array(sorted(values), pa.string())))
            yield batch.select(self._columns)

    def _segments(self, partition: Any) -> Iterator[pa.RecordBatch]:
        for one in partition.sets:
            yield from segments_of(one)

    def _rows(self, partition: Any) -> Iterator[pa.RecordBatch]:
        rows = Rows((self._table,), with_secrets(self._terms))
        for one in partition.sets:
            for _, batch in read_set(one, rows):
                yield without_dictionaries(batch)
        for _, batch in rows.batches(True):
            yield without_dictionaries(batch)


class FilteringReader(CaptureSetReader):
    """Reads one table, and only the rows of it that the query asks for by certain columns."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:  # noqa: N802
        """Take filters that name the values of certain columns; gives the others back. A row passes all."""
        names = [column.name for column in _table(self._table).columns]
        only = dict(self._terms.only)
        for one in filters:
            values = one.value if isinstance(one, In) else (one.value,) if isinstance(one, EqualTo) else ()
            column = one.attribute[0] if values and len(one.attribute) == 1 else ""
            if column in _FILTERED and column in names and all(isinstance(value, str) for value in values):
                only[column] = frozenset(values) & only.get(column, frozenset(values))
            else:
                yield one
        self._terms = self._terms._replace(only=tuple(only.items()))


_FILTERED = ("rule", "severity", "protocol", "kind")


def with_secrets(terms: RowTerms) -> RowTerms:
    """In a worker: terms with the secrets that are in their files."""
    if isinstance(terms.secrets, SecretsFiles):
        return terms._replace(secrets=terms.secrets.read())
    return terms


def segments_of(one: CaptureSet, given: Sequence[int] = ()) -> Iterator[pa.RecordBatch]:
    """The segments of a capture set. given: octets of each file whose packets are left out."""
    sink = _Segments(one)
    for position, file in enumerate(one.files):
        begin = given[position] if given else 0
        sink.after = _last_packet(file, position, begin) if begin else 0
        for _ in RangeReader(file, position, whole(file), sink):
            while len(sink.rows) >= BATCH_ROWS:
                yield sink.batch()
    if sink.rows:
        yield sink.batch()


def _last_packet(file: CaptureFile, position: int, octets: int) -> int:
    """The number of the last packet that is complete within the first octets of a file."""
    reader = RangeReader(file, position, Range(0, octets, None, False), SegmentSink())
    for _ in reader:
        pass
    return 0 if reader.reader is None else int(reader.reader.number)


class _Segments(SegmentSink):
    """Gathers segments as rows. after: the number of a packet, up to which they are left out."""

    def __init__(self, one: CaptureSet) -> None:
        super().__init__()
        self.rows: list[tuple[Any, ...]] = []
        self.after = 0
        self._set = escaped(one.name)
        self._captures = [escaped(file.capture) for file in one.files]
        self._ends: dict[bytes, tuple[str, int, str, int]] = {}

    def batch(self) -> pa.RecordBatch:
        """The next rows."""
        rows, self.rows = self.rows[:BATCH_ROWS], self.rows[BATCH_ROWS:]
        columns = [
            pa.array(values, field.type)
            for values, field in zip(zip(*rows, strict=True), SEGMENTS.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SEGMENTS.schema)

    def segment(self, segment: Segment) -> None:
        if segment.packet <= self.after:
            return
        key = segment.key
        ends = self._ends.get(key)
        if ends is None:
            if len(self._ends) >= _ENDS:
                self._ends.clear()
            ends = _ends(key)
            self._ends[key] = ends
        position, number = split(segment.packet)
        self.rows.append(
            (
                self._set,
                self._captures[position],
                number,
                *divmod(segment.time, 1000),
                *ends,
                segment.seq,
                None if segment.ack < 0 else segment.ack,
                segment.flags,
                segment.end - segment.start + segment.cut,
                segment.cut,
            )
        )


_ENDS = 65_536


def _ends(key: bytes) -> tuple[str, int, str, int]:
    """Address and port of the source, and of the destination, of a key (`Segment`)."""
    width = (len(key) - 4) // 2
    return (
        str(ipaddress.ip_address(key[:width])),
        u16(key, 2 * width),
        str(ipaddress.ip_address(key[width : 2 * width])),
        u16(key, 2 * width + 2),
    )
