"""Model files: a zip archive of one JSON header and plain numpy arrays. Nothing in it is executed on load.

The header is ``{"format": "partita-model", "version": 1, "kind": <estimator>, "library": ..., "values": {...}}``; arrays
lie beside it as ``<name>.npy``. A file is written under a temporary name in the same folder, flushed to disk, and only then
renamed: a failed or interrupted save leaves the old file as it was.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import ModelFileError

FORMAT = "partita-model"
VERSION = 1
HEADER = "header.json"


def _array_bytes(name: str, array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    if array.dtype.hasobject:
        raise TypeError(f"{name} holds Python objects, which a model file cannot store")
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def write_model(
    path: str | os.PathLike[str], kind: str, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray], library: str
) -> None:
    """Write a model file atomically."""
    target = Path(path)
    header = {"format": FORMAT, "version": VERSION, "kind": kind, "library": library, "values": dict(values)}
    members = {HEADER: json.dumps(header, indent=1, allow_nan=True).encode()}
    members.update({f"{name}.npy": _array_bytes(name, array) for name, array in arrays.items()})
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                for name, content in members.items():
                    archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_model(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Return the kind, values and arrays of a model file; a `ModelFileError` says what is wrong with it."""
    content = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            header = json.loads(archive.read(HEADER)) if HEADER in names else None
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise ModelFileError(f"{os.fspath(path)} is not a Partita model file")
            if header.get("version") != VERSION:
                raise ModelFileError(
                    f"{os.fspath(path)} has format version {header.get('version')!r}; this Partita reads version {VERSION}. "
                    f"It was written by Partita {header.get('library')}: upgrade Partita to read it."
                )
            kind, values = str(header["kind"]), dict(header["values"])
            arrays = {}
            for name in names:
                if name.endswith(".npy"):
                    member = io.BytesIO(archive.read(name))
                    arrays[name[:-4]] = np.lib.format.read_array(member, allow_pickle=False)
    except ModelFileError:
        raise
    except Exception as error:  # damage shows in a dozen ways, from zlib.error to "is encrypted"
        raise ModelFileError(f"{os.fspath(path)} is damaged or not a Partita model file: {error}") from error
    return kind, values, arrays
