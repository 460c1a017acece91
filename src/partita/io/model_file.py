"""Model files: a zip archive of one JSON header and plain numpy arrays. Nothing in it is executed on load.

The header is ``{"format": "partita-model", "version": 1, "kind": <estimator>, "library": ..., "values": {...}}``; arrays
lie beside it as ``<name>.npy``. A file is written under a temporary name in the same folder, flushed to disk, and only then
renamed: a failed or interrupted save leaves the old file as it was.

Large arrays are stored uncompressed and aligned, so that `read_model` can map them into memory instead of reading them. A
map is of the file that was opened: it stays good when another file takes its place. What is changed in it stays in memory.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from ..core.errors import ModelFileError
from .atomic import replacing

FORMAT = "partita-model"
VERSION = 1
HEADER = "header.json"
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
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name} holds Python objects, which a model file cannot store")
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


def read_model(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Return the kind, values and arrays of a model file; a `ModelFileError` says what is wrong with it."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                header = json.loads(archive.read(HEADER)) if HEADER in archive.namelist() else None
                if not isinstance(header, dict) or header.get("format") != FORMAT:
                    raise ModelFileError(f"{os.fspath(path)} is not a Partita model file")
                if header.get("version") != VERSION:
                    raise ModelFileError(
                        f"{os.fspath(path)} has format version {header.get('version')!r}; this Partita reads version "
                        f"{VERSION}. It was written by Partita {header.get('library')}: upgrade Partita to read it."
                    )
                kind, values = str(header["kind"]), dict(header["values"])
                members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
                arrays = {info.filename[:-4]: _read_array(file, archive, info) for info in members}
        except ModelFileError:
            raise
        except Exception as error:  # damage shows in a dozen ways, from zlib.error to "is encrypted"
            raise ModelFileError(f"{os.fspath(path)} is damaged or not a Partita model file: {error}") from error
    return kind, values, arrays


def _read_array(file: BinaryIO, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    if info.compress_type == zipfile.ZIP_STORED and info.file_size >= LARGE and not info.flag_bits & 1:
        mapped = _map_array(file, info)
        if mapped is not None:
            return mapped
    member = io.BytesIO(archive.read(info))
    return np.asarray(np.lib.format.read_array(member, allow_pickle=False))


def _map_array(file: BinaryIO, info: zipfile.ZipInfo) -> np.ndarray | None:
    """An array in the file itself; None if its data are not aligned."""
    file.seek(info.header_offset + LOCAL_LENGTHS)
    begin = info.header_offset + LOCAL_HEADER + sum(struct.unpack("<HH", file.read(4)))
    page = begin - begin % mmap.ALLOCATIONGRANULARITY
    content = mmap.mmap(file.fileno(), begin - page + info.file_size, access=mmap.ACCESS_COPY, offset=page)
    view = memoryview(content)[begin - page :]
    if zlib.crc32(view) != info.CRC:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {info.filename!r}")
    file.seek(begin)
    version = np.lib.format.read_magic(file)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, fortran, dtype = read_header(file)
    start = file.tell() - begin
    if dtype.hasobject:
        raise ValueError("arrays of Python objects are not loaded")
    array: np.ndarray = np.ndarray(shape, dtype, view, start, order="F" if fortran else "C")
    if start + array.nbytes != info.file_size:
        raise ValueError(f"{info.filename} has {info.file_size - start} bytes, but its header says {array.nbytes}")
    return None if (begin + start) % ALIGNMENT else array
