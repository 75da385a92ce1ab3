"""Which files are read, which of them are one capture set, and opening them.

A source is a file, a directory (all files below it), a pattern (`captures/**/*.pcap`) or the URL of one in
a file system that pyarrow knows (`s3://bucket/captures`, `gs://`, `hdfs://`, `file:///`), with its options
behind a question mark; credentials in it are in no name that is shown or stored. Every file found is an
input, whether it can be read or not. gzip and zstd are told by the file's first octets, not by its
name.

The files of a set follow one another by the time of their first packet, those without by name. If they
overlap in time (several taps; or it cannot be seen that they do not, as in compressed files) their packets
are put in the order of time, as `check --merge` does; up to MAX_MERGE_OPEN at a time.
"""

import contextlib
import fnmatch
import glob
import heapq
import os
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
from pyarrow import fs

from amqpscope.capture.decompression import Unpacked
from amqpscope.capture.reader import for_magic
from amqpscope.capture.sink import SegmentSink
from amqpscope.errors import CaptureError
from amqpscope.limits import MAX_MERGE_OPEN, MAX_TIME
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.packets import MAX_FILES

__all__ = [
    "READ_ERRORS",
    "CaptureSet",
    "Input",
    "Times",
    "Trouble",
    "capture_sets",
    "damaged",
    "file_system",
    "is_remote",
    "open_file",
    "shown",
    "size_now",
    "trouble_of",
]

_FIRST_LOOK = 64 * 1024
"""Octets of each file that are looked at before the plan is made: they hold its first packets."""

_LAST_LOOK = 256 * 1024
"""Octets at the end of a file of several that are looked at, to see whether they overlap in time."""

_LOOKERS = 16
"""Files looked at at a time: each waits for its file system, mostly."""

LAKE_MANIFEST = "manifest.json"
LAKE = "amqpscope/lake/"
"""How a lake is recognised (`lake`): one that lies among captures is passed over."""

READ_ERRORS = (OSError, CaptureError, pa.ArrowException)


class Trouble(NamedTuple):
    """Why a file cannot be read, or not to its end: a word for programs and a sentence for people."""

    reason: str
    detail: str


class Input(NamedTuple):
    """One input. capture: what it is called. path: where it is; absolute, or a URL.

    size: octets of the file when it was found; of one that grows no more are read. compression: gzip, zstd
    or "". first_time: of its first packet, ns since 1970. trouble: why it cannot be read at all. named: asked
    for, and not only found in a directory.
    """

    capture: str
    path: str
    size: int
    compression: str = ""
    first_time: int = 0
    trouble: Trouble | None = None
    named: bool = False

    @property
    def skipped(self) -> bool:
        """Whether it lies among captures and is none: nobody asked for it, so that is no failure."""
        return not self.named and self.trouble is not None and self.trouble.reason in _NO_CAPTURE


_NO_CAPTURE = ("foreign", "empty", "missing", "corrupt", "truncated")
"""What a first look can say of something that is no capture; damaged from its beginning, if compressed."""


class CaptureSet(NamedTuple):
    """Files that are one capture. by_time: they are read in the order of time, as they overlap or may; else
    one after another. too_many: also although they overlap.
    """

    name: str
    files: tuple[Input, ...]
    by_time: bool = False
    too_many: bool = False

    @property
    def size(self) -> int:
        """Octets to be read."""
        return sum(file.size for file in self.files if file.trouble is None)


def capture_sets(sources: Iterable[str], set_by: str = "directory") -> list[CaptureSet]:
    """All inputs of these sources, by capture set, in a fixed order.

    set_by: `directory`, `file`, or a regular expression that is searched in the path: what its first group
    matches (or all of it) names the set; files in which it is not found are each a set of their own.
    """
    named = _naming(set_by)
    found: dict[str, Input] = {}
    of_sources: list[list[str]] = []
    for source in sources:
        paths = []
        for file in _find(source):
            paths.append(file.path)
            if file.named or file.path not in found:
                found[file.path] = file
        of_sources.append(paths)
    with ThreadPoolExecutor(_LOOKERS) as lookers:
        looked = dict(zip(found, lookers.map(_look, found.values()), strict=True))
    for paths in of_sources:
        # A source in which there is no capture is a failure.
        if all(looked[path].skipped for path in paths):
            for path in paths:
                looked[path] = looked[path]._replace(named=True)
    inputs = looked.values()
    sets: dict[str, list[Input]] = {}
    for file in inputs:
        sets.setdefault(named(file), []).append(file)
    for name, files in sets.items():
        if len(files) > MAX_FILES:
            raise PipelineError(f"{name}: {len(files)} files in one capture set, at most {MAX_FILES} can be")
    made = []
    for name, files in sorted(sets.items()):
        files.sort(key=lambda file: (file.first_time, file.capture))
        overlap, too_many = _overlap(files)
        made.append(CaptureSet(name, tuple(files), overlap and not too_many, too_many))
    return made


def _naming(set_by: str) -> Any:
    if set_by == "directory":
        return lambda file: os.path.dirname(file.capture) or "."
    if set_by == "file":
        return lambda file: file.capture
    try:
        pattern = re.compile(set_by)
    except re.error as error:
        raise PipelineError(f"--set-by {set_by}: not a regular expression ({error})") from error

    def by_pattern(file: Input) -> str:
        match = pattern.search(file.capture)
        if match is None:
            return file.capture
        return match.group(1 if pattern.groups else 0) or file.capture

    return by_pattern


def file_system(path: str) -> tuple[fs.FileSystem, str]:
    """The file system a path or URL is in, and what it is called there.

    Raises PipelineError if there is no such file system, OSError if it cannot be asked.
    """
    if "://" not in path:
        return fs.LocalFileSystem(), path
    try:
        system, inner = fs.FileSystem.from_uri(_HADOOPS_S3.sub("s3://", path))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise PipelineError(f"{shown(path)}: {_first_line(error).replace(path, shown(path))}") from error
    return system, inner


_HADOOPS_S3 = re.compile(r"^s3[an]://")


def shown(path: str) -> str:
    """What a path or URL is called where people see it: without credentials and options."""
    if "://" not in path:
        return path
    scheme, _, rest = path.partition("?")[0].partition("://")
    authority, slash, inner = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{unquote(inner)}"


def is_remote(path: str) -> bool:
    """Whether it is read over a network, as far as one can see."""
    return "://" in path and not path.startswith("file://")


def _find(source: str) -> Iterator[Input]:
    if source == "-":
        raise PipelineError("- (standard input): the pipeline reads files, directories, patterns and URLs")
    if "://" in source:
        yield from _find_url(source)
    elif os.path.isdir(source):
        yield from _find_below(source)
    elif not os.path.lexists(source) and glob.has_magic(source):
        matches = sorted(glob.glob(source, recursive=True))
        if not matches:
            yield Input(source, source, 0, trouble=Trouble("missing", "no file matches"))
        for match in matches:
            if not os.path.isdir(match):
                yield _local(match)._replace(named=True)
    else:
        yield _local(source)._replace(named=True)


def _find_below(directory: str) -> Iterator[Input]:
    troubles: list[OSError] = []
    empty = True
    for folder, folders, names in os.walk(directory, onerror=troubles.append):
        folders.sort()
        if LAKE_MANIFEST in names and _is_lake(os.path.join(folder, LAKE_MANIFEST)):
            folders.clear()
            continue
        for name in sorted(names):
            empty = False
            yield _local(os.path.join(folder, name))
    for error in troubles:
        empty = False
        name = str(error.filename)
        yield Input(name, os.path.abspath(name), 0, trouble=trouble_of(error))
    if empty:
        yield Input(directory, os.path.abspath(directory), 0, trouble=Trouble("missing", "no capture in it"))


def _is_lake(path: str) -> bool:
    """Whether this is the manifest of a lake: what is beside it are tables, and no captures."""
    system, inner = file_system(path)
    with contextlib.suppress(*READ_ERRORS), system.open_input_stream(inner) as file:
        return LAKE.encode() in bytes(file.read(_MANIFEST_BEGINS))
    return False


_MANIFEST_BEGINS = 256


def _local(path: str) -> Input:
    absolute = os.path.abspath(path)
    try:
        status = os.stat(path)
    except OSError as error:
        return Input(path, absolute, 0, trouble=trouble_of(error))
    if not os.path.isfile(path):
        return Input(path, absolute, 0, trouble=Trouble("foreign", "not a regular file"))
    return Input(path, absolute, status.st_size)


def _find_url(url: str) -> Iterator[Input]:
    address, mark, options = url.partition("?")
    base, pattern = address.rstrip("/"), ""
    start = re.search(r"[*\[]", address)
    if start is not None and "/" in address[address.index("://") + 3 : start.start()]:
        base, pattern = address[: address.rindex("/", 0, start.start())], shown(address)
    try:
        system, inner = file_system(base + mark + options)
        information = system.get_file_info(inner)
        if information.type == fs.FileType.Directory:
            files = system.get_file_info(fs.FileSelector(inner, recursive=True))
        else:
            files = [information]
    except READ_ERRORS as error:
        yield Input(shown(url), url, 0, trouble=trouble_of(error))
        return
    manifests = [str(file.path) for file in files if str(file.base_name) == LAKE_MANIFEST]
    start_of = {path: base + quote(path[len(inner) :]) + mark + options for path in manifests}
    lakes = tuple(path.removesuffix(LAKE_MANIFEST) for path in manifests if _is_lake(start_of[path]))
    files = [file for file in files if not str(file.path).startswith(lakes)]
    found = False
    named = bool(pattern) or information.type != fs.FileType.Directory
    for file in sorted(files, key=lambda file: str(file.path)):
        below = str(file.path)[len(inner) :]
        name = shown(base) + below
        if file.type == fs.FileType.Directory or (pattern and not fnmatch.fnmatchcase(name, pattern)):
            continue
        found = True
        path = base + quote(below) + mark + options
        if file.type == fs.FileType.NotFound:
            yield Input(name, path, 0, trouble=Trouble("missing", "No such file"), named=named)
        else:
            yield Input(name, path, int(file.size or 0), named=named)
    if not found:
        what = "no file matches" if pattern else "no file in it"
        yield Input(shown(url), url, 0, trouble=Trouble("missing", what))


def open_file(file: Input) -> Any:
    """The file as it is, to be read at any place. Raises OSError."""
    system, path = file_system(file.path)
    # A name on this machine need not be text.
    return system.open_input_file(path if path != file.path else os.fsencode(path))


def size_now(file: Input) -> int:
    """How many octets it has at this moment. Raises OSError."""
    if "://" not in file.path:
        return os.stat(file.path).st_size
    system, path = file_system(file.path)
    return int(system.get_file_info(path).size or 0)


def _look(file: Input) -> Input:
    """Look at a file's first octets: whether it is a capture, and when it begins."""
    if file.trouble is not None:
        return file
    try:
        with open_file(file) as opened:
            unpacked = Unpacked(opened.read)
            block = b""
            while len(block) < _FIRST_LOOK:
                more = unpacked.read1(_FIRST_LOOK - len(block))
                if not more:
                    break
                block += more
    except READ_ERRORS as error:
        return file._replace(trouble=trouble_of(error))
    file = file._replace(compression=unpacked.form)
    if not block:
        if unpacked.damage:
            return file._replace(trouble=damaged(unpacked))
        what = f"compressed with {unpacked.form}, and nothing in it" if unpacked.form else "the file is empty"
        return file._replace(trouble=Trouble("empty", what))
    sink = Times()
    reader = for_magic(block, sink) if len(block) >= 4 else None
    if reader is None:
        return file._replace(trouble=Trouble("foreign", "not a capture file (neither pcap nor pcapng)"))
    reader.feed(block)
    return file._replace(first_time=sink.first)


class Times(SegmentSink):
    """Remembers the time of the first TCP segment, and the latest so far."""

    def __init__(self) -> None:
        super().__init__()
        self.first = 0
        self.latest = 0

    def segment(
        self,
        key: bytes,
        reverse: bytes,
        packet: int,
        time: int,
        seq: int,
        ack: int,
        flags: int,
        buf: bytes,
        start: int,
        end: int,
        cut: int,
    ) -> None:
        self.first = self.first or time
        if time > self.latest:
            self.latest = time


def _last_time(file: Input) -> int:
    """The time of the last TCP segment of a capture, or MAX_TIME if it is not to be seen in its last octets.

    The reader is given the file's beginning and its end, and finds the records in that as behind damage.
    """
    if file.compression:
        return MAX_TIME
    times = Times()
    try:
        with open_file(file) as opened:
            begin = min(_FIRST_LOOK, file.size)
            block = bytes(opened.read_at(begin, 0))
            reader = for_magic(block, times)
            if reader is None:
                return MAX_TIME
            reader.feed(block)
            if file.size > begin:
                if file.size > begin + _LAST_LOOK:
                    times.latest = 0
                octets = min(_LAST_LOOK, file.size - begin)
                reader.feed(bytes(opened.read_at(octets, file.size - octets)))
            reader.finish()
    except READ_ERRORS:
        return MAX_TIME
    return times.latest or MAX_TIME


def _overlap(files: list[Input]) -> tuple[bool, bool]:
    """Whether files, in order, may overlap in time; and whether more do at a time than can be open."""
    readable = [file for file in files if file.trouble is None and file.first_time]
    if len(readable) < 2:
        return False, False
    with ThreadPoolExecutor(_LOOKERS) as lookers:
        ends = list(lookers.map(_last_time, readable))
    overlaps = False
    under_way: list[int] = []
    for file, end in zip(readable, ends, strict=True):
        while under_way and under_way[0] <= file.first_time:
            heapq.heappop(under_way)
        overlaps = overlaps or bool(under_way)
        heapq.heappush(under_way, end)
        if len(under_way) > MAX_MERGE_OPEN:
            return True, True
    return overlaps, False


def trouble_of(error: BaseException) -> Trouble:
    """What an error in reading a file means for it."""
    text = _first_line(error)
    if isinstance(error, FileNotFoundError):
        return Trouble("missing", "No such file, or a link to none")
    if isinstance(error, PermissionError):
        return Trouble("forbidden", "Permission denied")
    if "ACCESS_DENIED" in text:
        return Trouble("forbidden", text)
    return Trouble("failed", text)


def damaged(unpacked: Unpacked) -> Trouble:
    """What the damage of a compressed file means for it."""
    return Trouble(unpacked.damage_code.removeprefix("capture/"), unpacked.damage)


def _first_line(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    with contextlib.suppress(IndexError):
        text = str(text).splitlines()[0]
    return str(text)
