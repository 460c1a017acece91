from __future__ import annotations

import contextlib
import io
import itertools
import json
import mmap
import os
import shutil
import warnings
import zipfile

import numpy as np
import pytest
from sklearn.datasets import load_iris

import partita
from partita import Majorize, ModelFileError, Newton, SoftmaxRegression, TooLargeError
from partita.core import memory
from partita.estimators.persistence import SavedModel
from partita.io import model_file, read_model, replacing, write_model
from partita.io.model_file import LARGE


@pytest.fixture
def fitted():
    X, y = load_iris(return_X_y=True)
    return SoftmaxRegression(l2=0.5, solver=Majorize("descending", "anderson"), tol=1e-5).fit(X, y), X


def test_round_trip(fitted, tmp_path):
    model, X = fitted
    path = tmp_path / "model.partita"
    model.save(path)
    copy = partita.load(path)
    assert type(copy) is SoftmaxRegression
    assert copy.get_params() == model.get_params()
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X))
    for name in ("coef_", "intercept_", "classes_"):
        assert getattr(copy, name).dtype == getattr(model, name).dtype
        assert np.array_equal(getattr(copy, name), getattr(model, name))
    assert copy.status_ is model.status_
    assert copy.n_iter_ == model.n_iter_
    assert np.array_equal(copy.trace_.objective, model.trace_.objective)
    assert copy.n_features_in_ == 4
    assert SoftmaxRegression.load(path).l2 == 0.5


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "b", "c"], dtype=object),
        np.array(["x", "yy", "ü"]),
        np.array([3, 1, 2], dtype=np.int8),
        np.array([0.5, 1.0, 2.0]),
    ],
)
def test_labels_of_any_plain_kind(labels, tmp_path):
    X, y = load_iris(return_X_y=True)
    labels = labels if labels.dtype.kind != "f" else labels.astype(str)
    model = SoftmaxRegression().fit(X, labels[y])
    model.save(tmp_path / "m")
    assert np.array_equal(partita.load(tmp_path / "m").predict(X), model.predict(X))


@pytest.mark.parametrize(
    "options",
    [
        {"prior": np.array([1.0, 2.0, 3.0])},
        {"prior": [1, 2, 3]},
        {"class_weight": {0: 2.0, 1: 1.0}},
        {"class_weight": "balanced"},
        {"solver": Newton("cg", max_cg=7)},
        {"fit_intercept": np.True_},
        {"solver": "lbfgs", "n_jobs": 1, "verbose": np.int64(0), "l2": np.float32(0.5)},
    ],
)
def test_parameters_of_any_kind(options, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = SoftmaxRegression(**options).fit(X, y)
    partita.save(model, tmp_path / "m")
    copy = partita.load(tmp_path / "m")
    assert np.array_equal(copy.fit(X, y).coef_, model.coef_)


def test_unfitted_models_are_saved_too(tmp_path):
    SoftmaxRegression(l2=3.0).save(tmp_path / "m")
    assert partita.load(tmp_path / "m").l2 == 3.0


def test_what_cannot_be_stored_is_refused_and_the_old_file_stays(fitted, tmp_path):
    model, _ = fitted
    path = tmp_path / "m"
    model.save(path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match="random_state"):
        model.set_params(random_state=np.random.default_rng(0)).save(path)
    with pytest.raises(TypeError, match="only Partita estimators"):
        partita.save(object(), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_interrupted_save_keeps_the_old_file(fitted, tmp_path, monkeypatch, where):
    model, _ = fitted
    path = tmp_path / "m"
    model.save(path)
    before = path.read_bytes()

    def fail(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, where, fail)
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


def rewrite(path, header=None, **members):
    """A copy of a model file with another header or further members."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    if header is not None:
        content["header.json"] = json.dumps(json.loads(content["header.json"]) | header).encode()
    content |= members
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def test_unknown_versions_and_kinds_are_named(fitted, tmp_path):
    path = tmp_path / "m"
    fitted[0].save(path)
    rewrite(path, {"version": 99})
    with pytest.raises(ModelFileError, match="format version 99; this Partita reads version 1"):
        partita.load(path)
    fitted[0].save(path)
    rewrite(path, {"kind": "TimeMachine"})
    with pytest.raises(ModelFileError, match="unknown estimator 'TimeMachine'"):
        partita.load(path)
    fitted[0].save(path)
    rewrite(path, {"values": {}})
    with pytest.raises(ModelFileError, match="damaged"):
        partita.load(path)


def test_damaged_files_are_named(fitted, tmp_path):
    path = tmp_path / "m"
    fitted[0].save(path)
    content = path.read_bytes()
    for broken in (b"", b"not a zip", content[: len(content) // 2], content[:100] + b"\0" * 50 + content[150:]):
        path.write_bytes(broken)
        with pytest.raises(ModelFileError):
            partita.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(ModelFileError, match="not a Partita model file"):
        partita.load(path)
    with pytest.raises(FileNotFoundError):
        partita.load(tmp_path / "nowhere")


def test_any_flipped_byte_is_a_model_file_error_or_harmless(fitted, tmp_path):
    path = tmp_path / "m"
    fitted[0].save(path)
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        with contextlib.suppress(ModelFileError):
            # bytes that no checksum covers (dates, attributes): the model is what it was
            assert np.array_equal(partita.load(path).coef_, fitted[0].coef_)


def test_loading_executes_nothing(fitted, tmp_path):
    """An array that hides a pickle is refused, not run."""
    path = tmp_path / "m"
    fitted[0].save(path)

    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "boom"),)

    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    rewrite(path, None, **{"coef_.npy": buffer.getvalue()})
    with pytest.raises(ModelFileError):
        partita.load(path)
    assert not (tmp_path / "boom").exists()


def test_load_of_another_class_is_refused(fitted, tmp_path):
    class Other(SavedModel):
        pass

    fitted[0].save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="holds a SoftmaxRegression, not a Other"):
        Other.load(tmp_path / "m")


def test_the_format_alone_round_trips(tmp_path):
    write_model(tmp_path / "m", "SoftmaxRegression", {"parameters": {}, "fitted": {}}, {}, "0")
    kind, values, arrays = read_model(tmp_path / "m")
    assert (kind, values, arrays) == ("SoftmaxRegression", {"parameters": {}, "fitted": {}}, {})
    assert isinstance(partita.load(tmp_path / "m"), SoftmaxRegression)


def large_arrays():
    rng = np.random.default_rng(0)
    return {
        "floats": rng.normal(size=(300, 700)),
        "halves": np.asfortranarray(rng.normal(size=(600, 700)).astype(np.float32)),
        "bytes": rng.integers(0, 255, LARGE + 3).astype(np.uint8),
        "few": np.arange(5),
    }


def write_large(path):
    write_model(path, "SoftmaxRegression", {"parameters": {}, "fitted": {}}, large_arrays(), "0")


def owner(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def test_large_arrays_are_mapped_if_asked_and_aligned(tmp_path):
    path = tmp_path / "m"
    write_large(path)
    before = path.read_bytes()
    arrays = read_model(path, mmap=True)[2]
    for name, array in large_arrays().items():
        found = arrays[name]
        assert isinstance(owner(found), mmap.mmap) == (name != "few")
        assert found.dtype == array.dtype
        assert np.array_equal(found, array)
        assert found.flags.aligned
        assert found.flags.c_contiguous
        assert found.ctypes.data % 64 == 0 or name == "few"
        found[0] = 0  # kernels are compiled for arrays that can be written to
    assert path.read_bytes() == before


def test_a_mapped_model_outlives_its_file(tmp_path):
    path = tmp_path / "m"
    write_large(path)
    arrays = read_model(path, mmap=True)[2]
    write_model(path, "SoftmaxRegression", {}, {"floats": np.zeros((300, 700))}, "0")
    assert np.array_equal(arrays["floats"], large_arrays()["floats"])
    assert not read_model(path, mmap=True)[2]["floats"].any()
    path.unlink()
    assert np.array_equal(arrays["bytes"], large_arrays()["bytes"])


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_large_arrays_of_other_archives_are_read(tmp_path, compression):
    """Compressed, as earlier files have them, or stored without alignment."""
    path = tmp_path / "m"
    write_large(path)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    arrays = read_model(path)[2]
    for name, array in large_arrays().items():
        assert np.array_equal(arrays[name], array)
        assert arrays[name].flags.aligned


def test_damage_in_a_mapped_array_is_found(tmp_path):
    path = tmp_path / "m"
    write_large(path)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()

    def flip(place):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])

    for info in members:
        for shift in (20, 27, 29, 60, 130, 170):
            flip(info.header_offset + shift)
            with contextlib.suppress(ModelFileError):  # not all bytes of a zip file matter
                for name, array in read_model(path)[2].items():
                    assert np.array_equal(array, large_arrays()[name])
    for info, mapped in itertools.product(members[1:-1], (False, True)):
        flip(info.header_offset + info.file_size // 2)
        with pytest.raises(ModelFileError, match="CRC-32"):
            read_model(path, mmap=mapped)
    path.write_bytes(content[:-1000])
    with pytest.raises(ModelFileError):
        read_model(path)


def test_a_stored_pickle_is_refused_however_large(tmp_path):
    path = tmp_path / "m"
    write_large(path)
    buffer = io.BytesIO()
    np.save(buffer, np.array(["x" * LARGE], dtype=object), allow_pickle=True)
    rewrite(path, None, **{"floats.npy": buffer.getvalue()})
    with pytest.raises(ModelFileError):
        read_model(path)


def test_a_wrong_shape_is_refused(tmp_path):
    path = tmp_path / "m"
    write_large(path)
    with zipfile.ZipFile(path) as archive:
        content = archive.read("floats.npy")
    for shape in (b"(300, 600)", b"(900, 700)"):
        rewrite(path, None, **{"floats.npy": content.replace(b"(300, 700)", shape)})
        with pytest.raises(ModelFileError):
            read_model(path)


def test_replacing_follows_links_and_leaves_devices_alone(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
        assert (tmp_path / "real").read_bytes() == b"old"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with replacing(tmp_path / "pipe") as file:
        file.write(b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_a_loaded_model_owns_its_memory(tmp_path):
    """Overwriting its file in place does not change it, and cutting the file short does not end the process."""
    path = tmp_path / "m"
    write_large(path)
    arrays = read_model(path)[2]
    for name, array in large_arrays().items():
        assert arrays[name].flags.owndata or arrays[name].base.flags.owndata
        assert arrays[name].flags.writeable
        assert arrays[name].dtype == array.dtype
    content = path.read_bytes()
    with open(path, "r+b") as file:
        file.write(bytes(len(content)))
        file.truncate(1000)
    for name, array in large_arrays().items():
        assert np.array_equal(arrays[name], array)


def test_models_are_mapped_only_if_asked(tmp_path):
    model = SoftmaxRegression().fit(np.eye(2), [0, 1])
    model.n_features_in_, model.coef_ = LARGE // 8, np.arange(LARGE // 8, dtype=float)[None]
    model.save(tmp_path / "m")
    for load in (partita.load, SoftmaxRegression.load):
        assert not isinstance(owner(load(tmp_path / "m").coef_), mmap.mmap)
        mapped = load(tmp_path / "m", mmap=True)
        assert isinstance(owner(mapped.coef_), mmap.mmap)
        assert np.array_equal(mapped.coef_, model.coef_)
    with pytest.raises(ValueError, match="mmap must be True or False"):
        partita.load(tmp_path / "m", mmap="r")


class Zeros(io.RawIOBase):
    """So many zero bytes, which are never in memory together."""

    def __init__(self, size):
        self.left = size

    def read(self, size=-1):
        size = min(self.left, size)
        self.left -= size
        return bytes(size)


def add_zeros(path, name, size, begin=b""):
    """Add a member of zeros, compressed a thousand times."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open(name, "w") as member:
        member.write(begin)
        shutil.copyfileobj(Zeros(size - len(begin)), member, 1 << 20)


def npy(shape, dtype="<f8"):
    """The beginning of an array file."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": dtype, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def test_members_that_nothing_names_are_not_unpacked(fitted, tmp_path, monkeypatch):
    path = tmp_path / "m"
    fitted[0].save(path)
    add_zeros(path, "unused.npy", 1 << 26)
    opened = []
    open_member = zipfile.ZipFile.open
    monkeypatch.setattr(
        zipfile.ZipFile, "open", lambda self, info, *rest: opened.append(info.filename) or open_member(self, info, *rest)
    )
    assert np.array_equal(partita.load(path).coef_, fitted[0].coef_)
    assert "coef_.npy" in opened
    assert "unused.npy" not in opened


@pytest.mark.parametrize(
    ("begin", "message"),
    [
        (b"", "coef_|magic|header"),
        (npy((3, 4)), "coef_.npy has 67108[0-9]* bytes, but its header says 96, shape"),
        (npy((1 << 40, 1 << 40)), "but its header says 9671406556917033397649408"),
        (npy((-1, -12)), "header says 96"),
        (npy((1 << 23,), "<c16"), "an array of complex128, which no model has"),
        (npy((1 << 26,), "|V0"), "no model has"),
        (npy((1 << 60,), "<U0"), "no model has"),
    ],
)
def test_members_larger_than_they_say_are_refused_unread(fitted, tmp_path, begin, message):
    path = tmp_path / "m"
    fitted[0].save(path)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist() if name != "coef_.npy"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    add_zeros(path, "coef_.npy", 1 << 26, begin)
    with pytest.raises(ModelFileError, match=message):
        partita.load(path)


def test_what_does_not_fit_into_memory_is_said_before_it_is_read(fitted, tmp_path, monkeypatch):
    path = tmp_path / "m"
    write_large(path)
    rewrite(path, None, **{"few.npy": npy((1 << 22,)) + bytes(1 << 25)})
    monkeypatch.setattr(memory, "available_memory", lambda: 1e7)
    with pytest.raises(TooLargeError, match=r"few.npy, an array of shape \(4194304,\), needs 33.6 MB; 10 MB are free"):
        read_model(path)


def test_headers_have_a_limit(fitted, tmp_path, monkeypatch):
    path = tmp_path / "m"
    fitted[0].save(path)
    monkeypatch.setattr(model_file, "LARGEST_HEADER", 100)
    with pytest.raises(ModelFileError, match=r"header.json has .* bytes, and may have 100 bytes"):
        partita.load(path)
    with pytest.raises(ValueError, match="Set large parameters to None"):
        fitted[0].save(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [("../coef_.npy", "in a folder"), ("a\\coef_.npy", "in a folder|damaged"), ("coef_.npy", "there twice")],
)
def test_members_twice_or_with_paths_are_refused(fitted, tmp_path, name, message):
    path = tmp_path / "m"
    fitted[0].save(path)
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
        warnings.simplefilter("ignore")  # of a name that is there twice
        archive.writestr(name, b"")
    with pytest.raises(ModelFileError, match=message):
        partita.load(path)


def test_encrypted_members_are_refused(fitted, tmp_path):
    path = tmp_path / "m"
    fitted[0].save(path)
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\x01\x02", 0, content.rindex(b"coef_.npy"))
    content[at + 8] |= 1
    content[content.index(b"coef_.npy") - 24] |= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="encrypted"):
        partita.load(path)


def test_numbers_of_the_other_byte_order_are_read(fitted, tmp_path):
    path = tmp_path / "m"
    fitted[0].save(path)
    buffer = io.BytesIO()
    np.save(buffer, fitted[0].coef_.astype(">f8"))
    rewrite(path, None, **{"coef_.npy": buffer.getvalue()})
    loaded = partita.load(path).coef_
    assert loaded.dtype == np.float64
    assert np.array_equal(loaded, fitted[0].coef_)
