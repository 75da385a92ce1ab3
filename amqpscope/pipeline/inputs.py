"""Which files are read, what a first look at them tells, and opening them.

A source is a file, a directory (all files below it), a pattern (`captures/**/*.pcap`) or the URL of one in
a file system that pyarrow knows (`s3://bucket/captures`, `gs://`, `hdfs://`, `file:///`), with its options
behind a question mark; credentials in it are in no name that is shown or stored. Every file found is an
input, whether it can be read or not. gzip and zstd are reported by the file's first octets, not by its
name.
"""

import contextlib
import fnmatch
import glob
import hashlib
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
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.errors import CaptureError
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.refusals import in_words

__all__ = [
    "FIRST_LOOK",
    "LOOKERS",
    "READ_ERRORS",
    "CaptureFile",
    "Times",
    "Trouble",
    "address",
    "begins_with",
    "damaged",
    "escaped",
    "file_system",
    "find_inputs",
    "first_octets",
    "has_identity",
    "identity_of",
    "is_remote",
    "open_file",
    "plain",
    "shown",
    "size_now",
    "trouble_of",
]

FIRST_LOOK = 64 * 1024
"""Octets of each file that are looked at before the plan is made: they hold its first packets."""

LOOKERS = 16
"""Files looked at at a time: each waits for its file system, mostly."""

_LAKE = ("runs", "_delta_log")
"""How a lake is recognised (`lake`): what its directory has. One that lies among captures is passed over."""

READ_ERRORS = (OSError, CaptureError, pa.ArrowException)


class Trouble(NamedTuple):
    """Why a file cannot be read, or not to its end: a word for programs and a sentence for people."""

    reason: str
    detail: str


class CaptureFile(NamedTuple):
    """One input. capture: what it is called in the tables, path: where it is. Both absolute paths, or URLs; a
    name without credentials and options. They differ where a set has had another file of this name before
    (see `followed`).

    size: octets of the file when it was found; of one that grows no more are read. compression: gzip, zstd
    or "". first_time: of its first packet, ns since 1970. trouble: why it cannot be read at all. named: asked
    for, and not only found in a directory. identity: what it is recognised by whatever it is called (see
    `identity_of`); "" if no packet is in its first octets.
    """

    capture: str
    path: str
    size: int
    compression: str = ""
    first_time: int = 0
    trouble: Trouble | None = None
    named: bool = False
    identity: str = ""

    @property
    def name(self) -> str:
        """What it is called where it is."""
        return shown(self.path)

    @property
    def skipped(self) -> bool:
        """Whether it lies among captures and is none: nobody asked for it, so that is no failure."""
        return not self.named and self.trouble is not None and self.trouble.reason in _NO_CAPTURE


_NO_CAPTURE = ("foreign", "empty", "missing", "corrupt", "truncated")
"""What a first look can say of something that is no capture; damaged from its beginning, if compressed."""


def find_inputs(sources: Iterable[str]) -> list[CaptureFile]:
    """All inputs of these sources, each once and looked at, in the order in which they are found.

    Raises PipelineError for a source that cannot be one.
    """
    found: dict[str, CaptureFile] = {}
    of_sources: list[list[str]] = []
    for source in sources:
        paths = []
        for file in _find(source):
            paths.append(file.path)
            if file.named or file.path not in found:
                found[file.path] = file
        of_sources.append(paths)
    with ThreadPoolExecutor(LOOKERS) as lookers:
        looked = dict(zip(found, lookers.map(_look, found.values()), strict=True))
    for paths in of_sources:
        # A source in which there is no capture is a failure.
        if all(looked[path].skipped for path in paths):
            for path in paths:
                looked[path] = looked[path]._replace(named=True)
    return list(looked.values())


def file_system(path: str) -> tuple[fs.FileSystem, str]:
    """The file system a path or URL is in, and what it is called there.

    Raises PipelineError if there is no such file system, OSError if it cannot be asked.
    """
    if "://" not in path:
        return fs.LocalFileSystem(), path
    url = _HADOOPS_S3.sub("s3://", path)
    if _GOOGLE.match(url) and "retry_limit_seconds=" not in url:
        url += f"{'&' if '?' in url else '?'}retry_limit_seconds={_GOOGLE_PATIENCE}"
    try:
        system, inner = fs.FileSystem.from_uri(url)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise PipelineError(f"{shown(path)}: {in_words(error).replace(url, shown(path))}") from error
    return system, inner


_HADOOPS_S3 = re.compile(r"^s3[an]://")
_GOOGLE = re.compile(r"^gc?s://")

_GOOGLE_PATIENCE = 30
"""Seconds for which a request to Google's store is tried again: Arrow does so for 15 minutes, silently."""


def shown(path: str) -> str:
    """What a path or URL is called where people see it: without credentials and options."""
    if "://" not in path:
        return path
    scheme, _, rest = path.partition("?")[0].partition("://")
    authority, slash, inner = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{unquote(inner)}"


def address(name: str) -> str:
    """A path or URL that is called so (`shown`)."""
    if "://" not in name:
        return name
    scheme, _, rest = name.partition("://")
    authority, slash, inner = rest.partition("/")
    return f"{scheme}://{authority}{slash}{quote(inner)}"


def escaped(name: str) -> str:
    """A name as the tables have it: octets of a file's name that are no text as escapes."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def is_remote(path: str) -> bool:
    """Whether it is read over a network, as far as one can see."""
    return "://" in path


def plain(path: str) -> str:
    """A URL of a file on this machine (`file:/x`, `file:///x`) as a path; all else as it is."""
    local = _LOCAL_URL.match(path)
    return unquote(local.group(1)) if local else path


_LOCAL_URL = re.compile(r"file:(?://(?:localhost)?)?(/(?!/).*)", re.DOTALL)


def _find(source: str) -> Iterator[CaptureFile]:
    source = plain(source)
    if source == "-":
        raise PipelineError("- (standard input): the pipeline reads files, directories, patterns and URLs")
    if "://" not in source:
        # The same name, and so the same rows, wherever the command is started.
        source = os.path.abspath(source)
    if "://" in source:
        yield from _find_url(source)
    elif os.path.isdir(source):
        yield from _find_below(source)
    elif not os.path.lexists(source) and glob.has_magic(source):
        matches = sorted(glob.glob(source, recursive=True))
        if not matches:
            yield CaptureFile(source, source, 0, trouble=Trouble("missing", "no file matches"))
        for match in matches:
            if not os.path.isdir(match):
                yield _local(match)._replace(named=True)
    else:
        yield _local(source)._replace(named=True)


def _find_below(directory: str) -> Iterator[CaptureFile]:
    troubles: list[OSError] = []
    empty = True
    for folder, folders, names in os.walk(directory, onerror=troubles.append):
        folders.sort()
        if _LAKE[0] in folders and os.path.isdir(os.path.join(folder, *_LAKE)):
            folders.clear()
            continue
        for name in sorted(names):
            empty = False
            yield _local(os.path.join(folder, name))
    for error in troubles:
        empty = False
        name = str(error.filename)
        yield CaptureFile(name, name, 0, trouble=trouble_of(error))
    if empty:
        yield CaptureFile(directory, directory, 0, trouble=Trouble("missing", "no capture in the directory"))


def _local(path: str) -> CaptureFile:
    try:
        status = os.stat(path)
    except OSError as error:
        return CaptureFile(path, path, 0, trouble=trouble_of(error))
    if not os.path.isfile(path):
        return CaptureFile(path, path, 0, trouble=Trouble("foreign", "not a regular file"))
    return CaptureFile(path, path, status.st_size)


def _find_url(url: str) -> Iterator[CaptureFile]:
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
        yield CaptureFile(shown(url), url, 0, trouble=trouble_of(error))
        return
    log = "/{}/{}/".format(*_LAKE)
    lakes = {path.partition(log)[0] + "/" for path in (str(file.path) for file in files) if log in path}
    files = [file for file in files if not str(file.path).startswith(tuple(lakes))]
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
            yield CaptureFile(name, path, 0, trouble=Trouble("missing", "No such file"), named=named)
        else:
            yield CaptureFile(name, path, int(file.size or 0), named=named)
    if not found:
        what = "no file matches" if pattern else "no file in the directory"
        yield CaptureFile(shown(url), url, 0, trouble=Trouble("missing", what))


def open_file(file: CaptureFile) -> Any:
    """The file as it is, to be read at any place. Raises OSError."""
    system, path = file_system(file.path)
    # A name on this machine need not be text.
    return system.open_input_file(path if path != file.path else os.fsencode(path))


def size_now(file: CaptureFile) -> int:
    """How many octets it has at this moment. Raises OSError."""
    if "://" not in file.path:
        return os.stat(file.path).st_size
    system, path = file_system(file.path)
    return int(system.get_file_info(path).size or 0)


def _look(file: CaptureFile) -> CaptureFile:
    """Look at a file's first octets: whether it is a capture, and when it begins."""
    if file.trouble is not None:
        return file
    try:
        unpacked, block = first_octets(file)
    except READ_ERRORS as error:
        return file._replace(trouble=trouble_of(error))
    file = file._replace(compression=unpacked.form)
    if not block:
        if unpacked.damage:
            return file._replace(trouble=damaged(unpacked))
        what = f"compressed with {unpacked.form}, but empty" if unpacked.form else "the file is empty"
        return file._replace(trouble=Trouble("empty", what))
    sink = Times()
    reader = for_magic(block, sink) if len(block) >= 4 else None
    if reader is None:
        return file._replace(trouble=Trouble("foreign", "not a capture file (neither pcap nor pcapng)"))
    reader.feed(block)
    identity = identity_of(block, sink.first) if sink.first else ""
    return file._replace(first_time=sink.first, identity=identity)


def first_octets(file: CaptureFile) -> tuple[Unpacked, bytes]:
    """The first octets of a file, decompressed: FIRST_LOOK of them, or all if it has fewer; and what has
    decompressed them. Raises one of READ_ERRORS.
    """
    with open_file(file) as opened:
        unpacked = Unpacked(opened.read)
        block = b""
        while len(block) < FIRST_LOOK:
            more = unpacked.read1(FIRST_LOOK - len(block))
            if not more:
                break
            block += more
    return unpacked, block


def identity_of(begin: bytes, first_time: int) -> str:
    """What a capture is recognised by under any name: the time of its first packet, how many first octets are
    compared, and a hash of these. begin: these octets, decompressed.
    """
    return f"{first_time}-{len(begin)}-{hashlib.sha256(begin).hexdigest()[:32]}"


def begins_with(file: CaptureFile, identity: str) -> bool:
    """Whether a file begins, now, with the octets that an identity is of. Raises one of READ_ERRORS."""
    _, octets, digest = identity.split("-")
    _, block = first_octets(file)
    return hashlib.sha256(block[: int(octets)]).hexdigest()[:32] == digest


def has_identity(file: CaptureFile, identity: str) -> bool:
    """Whether a file can be read, and begins, now, with the octets that an identity is of."""
    try:
        return begins_with(file, identity)
    except READ_ERRORS:
        return False


class Times(SegmentSink):
    """Remembers the time of the first TCP segment, and the latest so far."""

    def __init__(self) -> None:
        super().__init__()
        self.first = 0
        self.latest = 0

    def segment(self, segment: Segment) -> None:
        self.first = self.first or segment.time
        self.latest = max(self.latest, segment.time)


def trouble_of(error: BaseException) -> Trouble:
    """What an error in reading a file means for it."""
    text = _first_line(error)
    if isinstance(error, FileNotFoundError):
        return Trouble("missing", "No such file, or a symbolic link to a missing file")
    if isinstance(error, PermissionError):
        return Trouble("forbidden", "Permission denied")
    if "AWS Error" in text or "google::cloud::Status" in text:
        refused = "ACCESS_DENIED" in text or "PERMISSION_DENIED" in text
        return Trouble("forbidden" if refused else "failed", in_words(error))
    return Trouble("failed", text)


def damaged(unpacked: Unpacked) -> Trouble:
    """What the damage of a compressed file means for it."""
    return Trouble(unpacked.damage_code.removeprefix("capture/"), unpacked.damage)


def _first_line(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    with contextlib.suppress(IndexError):
        text = str(text).splitlines()[0]
    return str(text)
