"""Saving and loading estimators, whatever they are: parameters, fitted numbers, trace and status."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from .. import __version__
from ..core.errors import ModelFileError
from ..core.random import generator
from ..core.results import Status, Trace
from ..core.stored import STORED
from ..core.validation import check_flag
from ..io.model_file import open_model, write_model
from ..solvers.named import solver_classes

_ESTIMATORS: dict[str, type[SavedModel]] = {}
T = TypeVar("T", bound="SavedModel")


class SavedModel:
    """Mixin: `save` and `load` for estimators whose fitted state is numbers, arrays, a trace and a status."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _ESTIMATORS[cls.__name__] = cls

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to a model file (see `partita.io.model_file`), atomically."""
        save(self, path)

    @classmethod
    def load(cls: type[T], path: str | os.PathLike[str], mmap: bool = False) -> T:
        """Read an estimator of this class from a model file; see `partita.load`."""
        estimator = load(path, mmap)
        if not isinstance(estimator, cls):
            raise ModelFileError(f"{os.fspath(path)} holds a {type(estimator).__name__}, not a {cls.__name__}")
        return estimator

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a model file keeps: plain values, and arrays."""
        arrays: dict[str, np.ndarray] = {}
        values: dict[str, Any] = {
            "parameters": {key: _encode(key, value) for key, value in self.get_params(deep=False).items()},  # type: ignore[attr-defined]
            "fitted": {},
        }
        for key, value in vars(self).items():
            if key.endswith("_") and not key.startswith("__"):
                values["fitted"][key] = _encode_fitted(key, value, arrays)
        return values, arrays

    @classmethod
    def _unpack(cls: type[T], values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> T:
        """An estimator from what `_pack` returned."""
        estimator = cls(**{key: _decode(value) for key, value in values["parameters"].items()})
        for key, value in values["fitted"].items():
            if not key.endswith("_") or key.startswith("__") or hasattr(cls, key):
                raise ModelFileError(f"{key!r} is no fitted attribute of {cls.__name__}")
            setattr(estimator, key, _decode_fitted(value, arrays))
        return estimator

    def _validate_loaded(self) -> None:
        """Raise a `ValueError` unless what came from a file fits together, as kernels trust it does.

        Estimators add their fitted attributes to this (see `loaded`). Attributes that they do not know are let through.
        """
        self._check_parameters()  # type: ignore[attr-defined]
        generator(getattr(self, "random_state", None))


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator to a model file. The old file stays as it was until the new one is complete."""
    if not isinstance(estimator, SavedModel):
        raise TypeError(f"only Partita estimators can be saved, got {type(estimator).__name__}")
    write_model(path, type(estimator).__name__, *estimator._pack(), __version__)


def load(path: str | os.PathLike[str], mmap: bool = False) -> Any:
    """Read an estimator from a model file. Nothing in the file is executed, and all parts must fit together.

    Parameters
    ----------
    path : str or path
    mmap : bool
        Map arrays of a megabyte or more into memory instead of reading them: processes that load the same file then share
        it. Only for files that nobody overwrites in place or cuts short while the model is in use: that changes the model,
        or ends the process. (`save` does neither: it writes a new file.)

    Raises
    ------
    ModelFileError
        The file is damaged, was changed so that its parts do not fit together, or is of a later version.
    TooLargeError
        It needs more memory than there is.
    """
    with open_model(path, mmap=check_flag("mmap", mmap)) as (kind, values, arrays):
        if kind == "SequenceData":
            raise ModelFileError(f"{os.fspath(path)} holds SequenceData, which is no estimator: use SequenceData.load")
        _import_public(kind)
        if kind not in _ESTIMATORS:
            raise ModelFileError(f"{os.fspath(path)} holds an unknown estimator {kind!r}; upgrade Partita to read it")
        estimator = _ESTIMATORS[kind]._unpack(values, arrays)
        estimator._validate_loaded()
    return estimator


def _import_public(name: str) -> None:
    """Import the public class of a name, if there is one: estimators and stored values are known once they are imported."""
    import partita

    from .. import constraints, io

    for face in (partita, constraints, io):
        if name in face.__all__:
            getattr(face, name)


def _encode(name: str, value: Any) -> Any:
    """A constructor parameter as JSON."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return {"list" if isinstance(value, list) else "tuple": [_encode(name, item) for item in value]}
    if isinstance(value, np.ndarray):
        return {"array": [_plain(name, item) for item in value.tolist()]}
    if isinstance(value, dict):
        return {"items": [[_encode(name, key), _encode(name, item)] for key, item in value.items()]}
    if type(value) in solver_classes().values():
        options = {entry.name: _encode(f"{name}.{entry.name}", getattr(value, entry.name)) for entry in fields(value)}
        return {"solver": type(value).__name__, "options": options}
    if is_dataclass(value) and type(value) in STORED.values():
        options = {entry.name: _encode(name, getattr(value, entry.name)) for entry in fields(value)}
        return {"constraint": type(value).__name__, "options": options}
    shown = repr(value)[:200]
    raise TypeError(f"parameter {name}={shown} cannot be stored in a model file; set it to a plain value before saving")


def _plain(name: str, value: Any) -> Any:
    return [_plain(name, item) for item in value] if isinstance(value, list) else _encode(name, value)


def _decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "list" in value:
        return [_decode(item) for item in value["list"]]
    if "tuple" in value:
        return tuple(_decode(item) for item in value["tuple"])
    if "constraint" in value:
        _import_public(value["constraint"])
        return STORED[value["constraint"]](**{key: _decode(item) for key, item in value["options"].items()})
    if "array" in value:
        return np.array([item if isinstance(item, list) else _decode(item) for item in value["array"]])
    if "items" in value:
        return {_decode(key): _decode(item) for key, item in value["items"]}
    if "solver" not in value:
        raise ModelFileError(f"a value has the unknown form {sorted(value)}")
    classes = {cls.__name__: cls for cls in solver_classes().values()}
    return classes[value["solver"]](**{key: _decode(item) for key, item in value["options"].items()})


def _encode_fitted(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A fitted attribute: arrays go beside the header, objects with known fields are taken apart."""
    if isinstance(value, Trace):
        for entry in fields(value):
            arrays[f"{name}{entry.name}"] = getattr(value, entry.name)
        return {"trace": name}
    if isinstance(value, Status):
        return {"status": value.name}
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            if not all(isinstance(item, str) for item in value.ravel()):
                raise TypeError(f"{name} holds Python objects other than strings, which a model file cannot store")
            return {"strings": value.tolist()}
        arrays[name] = value
        return {"stored": name}
    return _encode(name, value)


def _decode_fitted(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, dict):
        if "trace" in value:
            return Trace(**{entry.name: arrays[value["trace"] + entry.name] for entry in fields(Trace)})
        if "status" in value:
            return Status[value["status"]]
        if "strings" in value:
            strings = np.array(value["strings"], dtype=object)
            if not isinstance(value["strings"], list) or not all(isinstance(item, str) for item in strings.ravel()):
                raise ModelFileError("an array of strings holds something else")
            return strings
        if "stored" in value:
            return arrays[value["stored"]]
    return _decode(value)
