"""What the snippets of `resource_bombs` use: small makers of things that are large, or say that they are."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
import zipfile
import zlib
from typing import Any

import numpy as np

import partita as pt
from partita.structures import FactorGraph

STATES = np.random.default_rng(0).integers(0, 2, size=(50, 2))
X, Y = [[["a"], ["b"], ["c"]]] * 3, [["L", "M", "L"]] * 3


def grid(n: int) -> FactorGraph:
    number = np.arange(n * n).reshape(n, n)
    edges = [*zip(number[:, :-1].ravel().tolist(), number[:, 1:].ravel().tolist(), strict=True)]
    edges += [*zip(number[:-1].ravel().tolist(), number[1:].ravel().tolist(), strict=True)]
    return FactorGraph([2] * (n * n), edges)


def wide() -> Any:
    import scipy.sparse as sp

    return sp.random(6, 100_000, density=0.01, format="csr", random_state=0)


def frame(n: int) -> Any:
    import pandas

    return pandas.DataFrame({str(i): STATES[:5, 0] for i in range(n)} | {"c": STATES[:5, 1]})


def far() -> dict[str, Any]:
    return {"edges": np.array([[0, 10**9]]), "features": np.ones((1, 2))}


def tagged(template: str) -> Any:
    from partita.features import Templates

    columns = pt.io.read_columns(io.BytesIO(b"the D\ncat N\n"))
    return pt.ColumnTagger(Templates.parse(template), pt.ChainCRF(max_iter=2)).fit(columns).predict(columns)


def packed_zeros(begin: bytes, size: int) -> bytes:
    """Raw deflate data of a beginning and zeros up to a size; packed once and repeated, so that this takes no time."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    first = packer.compress(begin) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + again * ((size - len(begin)) >> 20) + packer.flush()


def load_with_member(name: str, size: int, shape: tuple[int, ...] = ()) -> Any:
    """Load a model file one of whose members has so many bytes of zeros, after the beginning of an array of a shape."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m")
        pt.SoftmaxRegression().fit(np.eye(3), [0, 1, 2]).save(path)
        with zipfile.ZipFile(path) as archive:
            content = {n: archive.read(n) for n in archive.namelist() if n != name}
        head = io.BytesIO()
        if shape:
            np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": shape})
        begin = head.getvalue().ljust(1 << 20, b"\0" if shape else b" ")
        with zipfile.ZipFile(path, "w") as archive:
            for other, data in content.items():
                archive.writestr(other, data)
            archive.writestr(zipfile.ZipInfo(name), packed_zeros(begin, size))
            info = archive.getinfo(name)
            info.compress_type, info.file_size = zipfile.ZIP_DEFLATED, size
        with open(path, "r+b") as file:
            file.seek(info.header_offset + 8)  # the method, where the member itself says it
            file.write(zipfile.ZIP_DEFLATED.to_bytes(2, "little"))
        return pt.load(path).predict(np.eye(3))


def wide_factor() -> bytes:
    """A UAI file with one factor of sixty binary variables."""
    scope = b" ".join(b"%d" % v for v in range(60))
    return b"MARKOV\n60\n" + b"2 " * 60 + b"\n1\n60 " + scope + b"\n1152921504606846976\n1\n"


def bif(states: int) -> bytes:
    return b"network n { }\nvariable a { type discrete [ %d ] { t, f }; }\nprobability ( a ) { table .5, .5; }\n" % states


def gzip_of(size: int) -> bytes:
    """A gzip file of letters (its checksum is wrong, but nobody should get there)."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    first = packer.compress(b"x" * 1000) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(b"x" * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(b"")[:10] + first + again * (size >> 20) + packer.flush() + bytes(8)


def read_file(name: str, content: bytes) -> Any:
    """Read a file by its kind, and ask it something."""
    from partita.io import iter_columns, read_bif, read_columns, read_uai

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(content)
        if name.endswith("uai"):
            graph, potentials = read_uai(path)
            return graph.infer(potentials)
        if name.endswith("bif"):
            return read_bif(path)
        return read_columns(path) if name == "columns" else list(iter_columns(path))
