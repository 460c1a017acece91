"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when the block ends, and vanishes if the block fails.

    It is written under another name in the same folder, flushed to disk and renamed, so that the old file stays as it was
    until then. The new file has the permissions of the old one and, where the system lets us, its owner. Links are followed;
    pipes and devices are written directly.

    A process that is killed leaves its unfinished file behind, ``.NAME.PID-….part``. The next save to the same path removes
    it, if the process is gone.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with open(target, "wb") as file:
            yield file
        return
    _remove_leftovers(target)
    old = target.stat() if target.exists() else None
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb", opener=None if old is None else _private) as file:
            _lock(file)
            yield file
            file.flush()
            if old is not None:
                _inherit(temporary, old)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read: nobody else needs to, before it has the permissions it will have."""
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o600)


def _inherit(temporary: Path, old: os.stat_result) -> None:
    """Give a file the permissions and, where that is allowed, the owner of what it will replace."""
    new = temporary.stat()
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError, AttributeError):  # first: changing the owner can take permissions away
            os.chown(temporary, old.st_uid, old.st_gid)
    with suppress(OSError):
        os.chmod(temporary, stat.S_IMODE(old.st_mode))


def _lock(file: BinaryIO) -> bool:
    """Lock a file as long as it is open; False if someone else has it."""
    try:
        import fcntl
    except ImportError:  # Windows, which does not remove open files anyway
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True


def _remove_leftovers(target: Path) -> None:
    """Remove unfinished files of processes that are gone: no process has their number, and none has them locked.

    (The number alone would not do: containers that share a folder have numbers of their own.)
    """
    pattern = re.compile(re.escape(f".{target.name}.") + r"([0-9]+)-[0-9a-f]{16}\.part")
    with suppress(OSError):
        for name in os.listdir(target.parent):
            match = pattern.fullmatch(name)
            if match and not _alive(int(match[1])):
                with suppress(OSError), open(target.with_name(name), "rb") as file:
                    if _lock(file):
                        os.unlink(target.with_name(name))


def _alive(pid: int) -> bool:
    """Whether there may be a process of this number."""
    if os.name != "posix":
        return True  # os.kill would end it there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # of another user
        return True
    return True
