"""Putting the small files of a lake together: the same rows in fewer files."""

from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.parts import LakeFile, PartWriter
from amqpscope.pipeline.runs import COMPACT, RunNotes
from amqpscope.pipeline.schemas import RUNS, TABLES
from amqpscope.pipeline.states import opened

__all__ = ["compact_tables", "needless_files"]

SMALL_OCTETS = 64 * 1024 * 1024
"""A file below this size is put together with others."""

_GROUP_OCTETS = 256 * 1024 * 1024
"""How many octets of small files become one file."""


def needless_files(lake: Lake, but: frozenset[str] = frozenset()) -> int:
    """How many files `compact_tables` would save, in the table with most of these. but: see there."""
    if lake.empty():
        return 0
    saved = [len(lake.parts(RUNS.name)) - 1]
    for name in lake.written().versions:
        groups = _groups([file for file in lake.parts(name) if file.path not in but])
        saved.append(sum(len(group) - 1 for group in groups))
    return max(saved)


def compact_tables(lake: Lake, but: frozenset[str] = frozenset()) -> tuple[int, int]:
    """Put small files of a lake together, in one commit; gives how many files there were, and are.

    A lake that an earlier version wrote is converted, whether or not it has small files. but: paths of files
    that stay as they are, beside those that states go on from.
    """
    but |= opened(lake)
    run, staging = lake.begin()
    try:
        last = lake.last()
        before = {name: lake.parts(name) for name in TABLES if name in last.versions}
        kept: dict[str, list[LakeFile]] = {}
        made: list[LakeFile] = []
        for name, files in before.items():
            kept[name] = files
            for group in _groups([file for file in files if file.path not in but]):
                writer = PartWriter(staging, f"{run}-{len(made)}", dict.fromkeys(lake.tag_names()))
                written = _together(lake, name, group, writer)
                made += written
                kept[name] = [file for file in kept[name] if file not in group]
    except BaseException:
        lake.abandon()
        raise
    total = sum(len(files) for files in before.values())
    if made:
        lake.commit(run, made, RunNotes(COMPACT, tuple(before), options=last.options), kept)
    else:
        lake.abandon()
    return total, sum(len(files) for files in kept.values()) + len(made)


def _groups(files: list[LakeFile]) -> list[list[LakeFile]]:
    """Small files of the same date and protocol, as many as are to become one file."""
    groups: list[list[LakeFile]] = []
    octets = 0
    for file in sorted(file for file in files if file.octets < SMALL_OCTETS):
        last = groups[-1][-1].path if groups else ""
        if last.rpartition("/")[0] != file.path.rpartition("/")[0] or octets + file.octets > _GROUP_OCTETS:
            groups.append([])
            octets = 0
        groups[-1].append(file)
        octets += file.octets
    return [group for group in groups if len(group) > 1]


def _together(lake: Lake, name: str, files: list[LakeFile], writer: PartWriter) -> list[LakeFile]:
    """Write the rows of files of a table into one file."""
    with lake.directory.explained():
        for batch in lake.dataset(name, files).to_batches():
            if batch.num_rows:
                writer.write(name, batch)
    return writer.close()
