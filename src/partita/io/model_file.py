"""Model files: a zip archive of one JSON header and plain numpy arrays. Nothing in it is executed on load.

The header is ``{"format": "partita-model", "version": 1, "kind": <estimator>, "library": ..., "values": {...}}``; arrays
lie beside it as ``<name>.npy``. A file is written under a temporary name in the same folder, flushed to disk, and only then
renamed: a failed or interrupted save leaves the old file as it was.

What is loaded owns its memory. Large arrays are stored uncompressed and aligned, so that with ``mmap=True`` they are mapped
instead of read. A map is of the file that was opened: it stays good when another file takes its place, but not when that
file itself is overwritten or cut short. What is changed in it stays in memory.

Only members that are asked for are unpacked, and none before its size has been compared with its own header and with the
memory there is: a small file can claim to hold a large one.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np

from ..core.errors import ModelFileError, TooLargeError
from ..core.memory import check_memory, in_units, product
from .atomic import replacing

FORMAT = "partita-model"
VERSION = 1
HEADER = "header.json"
#: Most bytes of the header, which is parsed as a whole and takes some ten times as much memory.
LARGEST_HEADER = 1 << 28
#: Bytes that are unpacked at once: they stay in the processor's cache between unpacking, checksum and copy.
PIECE = 1 << 18
#: What arrays may hold: booleans, integers, floating-point numbers, strings.
KINDS = "biufU"
#: Bytes of an array from which it is stored uncompressed.
LARGE = 1 << 20
#: Where stored arrays begin: at a multiple of it, as numpy aligns the data within them.
ALIGNMENT = 64
#: The head of a member of a zip file: its size, and where in it the lengths of the name and the extra field are.
LOCAL_HEADER, LOCAL_LENGTHS = 30, 26
#: Kind of an extra field that does nothing but align what follows (the one that Android's zipalign writes).
PADDING = 0xD935


def write_model(
    path: str | os.PathLike[str], kind: str, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray], library: str
) -> None:
    """Write a model file atomically."""
    header = {"format": FORMAT, "version": VERSION, "kind": kind, "library": library, "values": dict(values)}
    content = json.dumps(header, indent=1, allow_nan=True).encode()
    if len(content) > LARGEST_HEADER:
        raise ValueError(
            f"parameters and other plain values of {kind} take {in_units(len(content))} as text; a model file has room for "
            f"{in_units(LARGEST_HEADER)}. Set large parameters to None before saving"
        )
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name} holds Python objects, which a model file cannot store")
        if array.dtype.kind not in KINDS:
            raise TypeError(f"{name} is an array of {array.dtype}, which a model file cannot store")
    with replacing(path) as file, zipfile.ZipFile(file, "w", compresslevel=1) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER), content, zipfile.ZIP_DEFLATED)
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_STORED if array.nbytes >= LARGE else zipfile.ZIP_DEFLATED
            if array.nbytes >= LARGE:
                info.extra = _padding(file.tell() + LOCAL_HEADER + len(info.filename.encode()))
            with archive.open(info, "w", force_zip64=array.nbytes >= 1 << 30) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def _padding(position: int) -> bytes:
    """An extra field that makes what follows it begin at a multiple of `ALIGNMENT`."""
    size = -(position + 4) % ALIGNMENT
    return struct.pack("<HH", PADDING, size) + bytes(size)


class Contents(NamedTuple):
    """What a model file holds."""

    kind: str
    values: dict[str, Any]
    arrays: Mapping[str, np.ndarray]


def read_model(
    path: str | os.PathLike[str], *, mmap: bool = False, only: Collection[str] | None = None
) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Return the kind, values and arrays of a model file; a `ModelFileError` says what is wrong with it.

    Parameters
    ----------
    mmap : bool
        Map large arrays into memory instead of reading them. They are then only as good as the file stays.
    only : names of arrays, optional
        Read these only, if they are there. Default: all that are in the file.
    """
    with open_model(path, mmap=mmap) as (kind, values, arrays):
        return kind, values, {name: arrays[name] for name in arrays if only is None or name in only}


@contextmanager
def open_model(path: str | os.PathLike[str], *, mmap: bool = False) -> Iterator[Contents]:
    """The contents of a model file, whose arrays are read when they are asked for, within the block only.

    Whatever goes wrong within the block is a `ModelFileError` that names the file.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                yield _contents(_Members(file, archive, mmap), name)
        except ModelFileError as error:
            raise error if str(error).startswith(name) else ModelFileError(f"{name} is damaged: {error}") from error
        except (TooLargeError, MemoryError) as error:
            raise TooLargeError(f"{name} does not fit into memory: {error}") from error
        except Exception as error:  # damage shows in a dozen ways, from zlib.error to "is encrypted"
            raise ModelFileError(f"{name} is damaged or not a Partita model file: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """What an exception says; its kind where it says nothing that could be read alone."""
    if isinstance(error, KeyError):
        return f"it lacks {error.args[0]!r}" if error.args else "something is missing"
    if isinstance(error, IndexError | TypeError | AttributeError | AssertionError | RecursionError) or not str(error):
        return f"its parts do not fit together ({type(error).__name__}: {error})"
    return str(error)


def _contents(members: _Members, name: str) -> Contents:
    header = json.loads(members.content(HEADER, LARGEST_HEADER)) if members.has(HEADER) else None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{name} is not a Partita model file")
    if header.get("version") != VERSION:
        raise ModelFileError(
            f"{name} has format version {header.get('version')!r}; this Partita reads version {VERSION}. It was written by "
            f"Partita {header.get('library')}: upgrade Partita to read it."
        )
    kind, values = header["kind"], header["values"]
    if not isinstance(kind, str) or not isinstance(values, dict):
        raise ModelFileError(f"{name} is damaged: kind must be a string and values an object")
    return Contents(kind, values, members)


class _Members(Mapping[str, np.ndarray]):
    """The arrays of an archive by name, each read when it is asked for."""

    def __init__(self, file: BinaryIO, archive: zipfile.ZipFile, mapped: bool) -> None:
        self.file, self.archive, self.mapped = file, archive, mapped
        self.size = os.fstat(file.fileno()).st_size
        self.infos: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            if info.filename in self.infos:
                raise ModelFileError(f"{info.filename!r} is there twice")
            if "/" in info.filename or "\\" in info.filename:
                raise ModelFileError(f"{info.filename!r} is in a folder; a model file has none")
            if info.compress_size > self.size:
                raise ModelFileError(f"{info.filename!r} should have {info.compress_size} bytes, more than the whole file")
            self.infos[info.filename] = info

    def has(self, member: str) -> bool:
        return member in self.infos

    def content(self, member: str, most: int) -> bytes:
        """A member as bytes, if it has at most so many."""
        info = self.infos[member]
        if info.file_size > most:
            raise ModelFileError(f"{member} has {in_units(info.file_size)}, and may have {in_units(most)}")
        check_memory(member, 10.0 * info.file_size)
        return self.archive.read(info)

    def __iter__(self) -> Iterator[str]:
        return (name[:-4] for name in self.infos if name.endswith(".npy"))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return f"{name}.npy" in self.infos

    def __getitem__(self, name: str) -> np.ndarray:
        if not isinstance(name, str) or name not in self:
            raise ModelFileError(f"the array {name!r} is missing")
        info = self.infos[f"{name}.npy"]
        with self.archive.open(info) as member:
            array, start = _empty_array(member, info)
            if self.mapped and info.compress_type == zipfile.ZIP_STORED and info.file_size >= LARGE:
                found = _map_array(self.file, info, array, start)
                if found is not None:
                    return found
            _fill(member, array, info)
        native = array.dtype.newbyteorder("=")
        return array if array.dtype == native else array.astype(native)


def _empty_array(member: IO[bytes], info: zipfile.ZipInfo) -> tuple[np.ndarray, int]:
    """An array of the shape and type that a member begins with, not yet filled, and where its data begin."""
    version = np.lib.format.read_magic(member)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read_header is None:
        raise ValueError(f"{info.filename} has version {version} of the array format")
    shape, fortran, dtype = read_header(member)
    start = member.tell()
    if dtype.kind not in KINDS or dtype.itemsize == 0:
        raise ValueError(f"{info.filename} is an array of {dtype}, which no model has; arrays of objects are never loaded")
    needed = product(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or start + needed != info.file_size:
        raise ValueError(f"{info.filename} has {info.file_size - start} bytes, but its header says {needed}, shape {shape}")
    if product(size for size in shape if size) > 1 << 62:
        raise ValueError(f"{info.filename} has the shape {shape}, which no array can have")
    check_memory(f"{info.filename}, an array of shape {shape},", needed)
    return np.empty(shape, dtype, order="F" if fortran else "C"), start


def _fill(member: IO[bytes], array: np.ndarray, info: zipfile.ZipInfo) -> None:
    """Unpack what is left of a member into an array; the last piece has the checksum compared."""
    flat = array.ravel(order="K").view(np.uint8)  # the memory itself: the array is contiguous
    at = 0
    while piece := member.read(PIECE):
        if at + len(piece) > len(flat):
            break
        flat[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
        at += len(piece)
    if piece or at < len(flat):
        raise ValueError(f"{info.filename} is cut off after {at} of {len(flat)} bytes")


def _map_array(file: BinaryIO, info: zipfile.ZipInfo, like: np.ndarray, start: int) -> np.ndarray | None:
    """An array in the file itself; None if its data are not aligned, or not as this machine writes numbers."""
    file.seek(info.header_offset + LOCAL_LENGTHS)
    begin = info.header_offset + LOCAL_HEADER + sum(struct.unpack("<HH", file.read(4)))
    if (begin + start) % ALIGNMENT or not like.dtype.isnative:
        return None
    page = begin - begin % mmap.ALLOCATIONGRANULARITY
    content = mmap.mmap(file.fileno(), begin - page + info.file_size, access=mmap.ACCESS_COPY, offset=page)
    view = memoryview(content)[begin - page :]
    if zlib.crc32(view) != info.CRC:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {info.filename!r}")
    order: Any = "C" if like.flags.c_contiguous else "F"
    return np.ndarray(like.shape, like.dtype, view, start, order=order)
