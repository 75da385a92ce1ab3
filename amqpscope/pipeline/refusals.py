"""What a file system, an object store or delta-rs says when it refuses something, as one line of our own."""

import errno
import os
import re
from typing import Final

__all__ = ["in_words", "number_of"]

_COLOR: Final = re.compile(r"\x1b\[[0-9;]*m")

_NUMBER: Final = re.compile(r"(?:\(os error |\[errno |Os \{ code: )(\d+)", re.IGNORECASE)
"""How delta-rs and Arrow write the number of an error of the operating system."""

_PATH: Final = re.compile(r"'([^']+)'")
"""How Arrow names what it was about."""

_OURS: Final = re.compile(r"/_(lease|staging)\b")
"""Of what only a run makes in a lake, nobody has to know the path."""

_AWS: Final = re.compile(r"AWS Error (\w+) during (\w+) operation: (.*)", re.DOTALL)

_STATUS: Final = re.compile(r"google::cloud::Status\((\w+):")

_WORDS: Final = {
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOTDIR: "this is a file, or is below one, and a lake is a directory",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "no space is left on the file system",
    errno.EDQUOT: "the disk quota is used up",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
}

_OF_ALL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENAMETOOLONG, errno.EMFILE, errno.ENFILE)
"""Those that no path explains."""

_STORE: Final = {
    "NETWORK_CONNECTION": "the object store does not answer",
    "REQUEST_TIMEOUT": "the object store does not answer",
    "SERVICE_UNAVAILABLE": "the object store does not answer",
    "SLOW_DOWN": "the object store asks for fewer requests",
    "ACCESS_DENIED": "the object store refuses access: check the credentials, and what they allow",
    "INVALID_ACCESS_KEY_ID": "the object store does not know the access key",
    "SIGNATURE_DOES_NOT_MATCH": "the object store refuses the secret key",
    "NO_SUCH_BUCKET": "there is no such bucket",
    "RESOURCE_NOT_FOUND": "there is no such bucket or object",
}

_GOOGLE: Final = {
    "NOT_FOUND": "there is no such bucket or object",
    "PERMISSION_DENIED": _STORE["ACCESS_DENIED"],
    "UNAUTHENTICATED": _STORE["ACCESS_DENIED"],
    "UNAVAILABLE": "the object store does not answer",
}
"""What the statuses of Google Cloud Storage mean."""

_OTHERS: Final = (
    (re.compile(r"google::cloud::Status.*OAuth2"), "no credentials for the object store were found"),
    (re.compile(r"Parquet input source '([^']+)'"), "this file is damaged: {0}"),
    (
        re.compile(r"Unable to load lib(jvm|hdfs)"),
        "hdfs:// needs Hadoop and Java on this machine, and lib{0} was not found",
    ),
    (
        re.compile(r"Unrecognized filesystem type in URI"),
        "such a URL is not known: give a directory, or a URL that begins with s3://, gs:// or hdfs://",
    ),
)


def number_of(error: BaseException) -> int | None:
    """The number of the operating system's error (`errno`) that an error is about; None if there is none."""
    of: BaseException | None = error
    while of is not None:
        if isinstance(of, OSError) and of.errno:
            return of.errno
        found = _NUMBER.search(str(of))
        if found:
            return int(found[1])
        of = of.__cause__
    return None


def in_words(error: BaseException, where: str = "") -> str:
    """What went wrong, in one line. where: what the line is about, whose path it need not repeat."""
    text = _COLOR.sub("", str(error)).strip()
    number = number_of(error)
    if number is not None and not _STATUS.search(text):
        words = _WORDS.get(number) or os.strerror(number)
        path = ([where, *_PATH.findall(text)])[-1]  # of two, where it should have gone
        said = path == where or _OURS.search(path) or number in _OF_ALL
        return words if said else f"{words}: {path}"
    for pattern, words in _OTHERS:
        other = pattern.search(text)
        if other:
            return words.format(*other.groups())
    google = _STATUS.search(text)
    if google:
        return _GOOGLE.get(google[1], f"the object store refuses this ({google[1]})")
    store = _AWS.search(text)
    if store:
        words = _STORE.get(store[1], f"the object store refuses {store[2]} ({store[1]})")
        detail = store[3].rpartition("Details: ")[2].splitlines()[:1]
        return f"{words} ({detail[0]})" if detail and store[1] == "NETWORK_CONNECTION" else words
    lines = [line.strip(" ↳") for line in text.splitlines()]
    return next(filter(None, lines), type(error).__name__)
