"""Model files that are well-formed archives of well-formed JSON and arrays, whose parts have been changed.

What may come: a refusal at load (or, for what only shows in use, a sentence then); the same answers; other answers where the
change makes another legal model: other weights within their range, other labels, another constructor parameter. What must
not: answers that are none (NaN, probabilities that do not sum to one), or other answers after a change that no save could
have made: a type, a shape, a missing fitted attribute, NaN among weights.
"""

from __future__ import annotations

import copy
import io
import itertools
import json
import os
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import questions
from harness import Counts, Worker, judge, run_cases, scratch
from zoo import CASES

Parts = tuple[dict[str, Any], dict[str, np.ndarray]]
NUMBERS = [0, 1, -1, 2, 3, 7, 64, 1000, 2**31, 2**53, 2**64, 10**400, -(2**63), 0.5, -0.5, 1e308, -1e308, 1e-320]
NUMBERS += [float("nan"), float("inf"), float("-inf")]
STORED = [{"stored": "coef_"}, {"stored": "parameters_"}, {"stored": "nowhere"}, {"trace": "trace_"}, {"strings": ["a", 1]}]
FORMS = [{"list": []}, {"tuple": [0, 1]}, {"array": [[1.0, 2.0], [3.0]]}, {"array": [1, 2, 3]}, {"items": [[1, 2]]}]
FORMS += [{"status": "CONVERGED"}, {"status": "x"}, {"solver": "Newton", "options": {}}, {"solver": "os"}]
FORMS += [{"constraint": "Box"}, {"constraint": "Box", "options": {}}]
ODD: list[Any] = [None, True, False, "", "x", "full", "auto", "coef_", "\0", "\ud800", [], {}, [1, 2]]
ODD += NUMBERS + STORED + FORMS
KINDS = ("SoftmaxRegression", "LatentSoftmax", "MaxEnt", "ChainCRF", "HiddenChainCRF", "LatentDynamicCRF", "BoltzmannChain")
KINDS += ("ColumnTagger", "GraphCRF", "MarkovNetwork", "MatchingCRF", "BayesianNetwork", "SequenceData")


def read_parts(path: str) -> Parts:
    with zipfile.ZipFile(path) as archive:
        arrays = {n[:-4]: np.load(io.BytesIO(archive.read(n))) for n in archive.namelist() if n.endswith(".npy")}
        return json.loads(archive.read("header.json")), arrays


def write_parts(path: str, parts: Parts) -> None:
    header, arrays = parts
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getvalue())


# Changes. Each takes the parts and a generator, changes them, and says what it did and whether a save could have made it.


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(inner, dict | list) and inner:
            yield from _places(inner, (*path, key))


def _pick(rng: np.random.Generator, values: dict[str, Any]) -> tuple[Any, Any, tuple[Any, ...]]:
    """A random place of the header: what holds it, its key, and the whole path; shallow ones as often as deep ones."""
    places = list(_places(values))
    depth = rng.choice(sorted({len(place) for place in places}))
    chosen = [place for place in places if len(place) == depth]
    place = chosen[int(rng.integers(len(chosen)))]
    holder: Any = values
    for key in place[:-1]:
        holder = holder[key]
    return holder, place[-1], place


def change_value(parts: Parts, rng: np.random.Generator) -> tuple[str, bool]:
    holder, key, place = _pick(rng, parts[0]["values"])
    value = ODD[int(rng.integers(len(ODD)))]
    holder[key] = copy.deepcopy(value)
    return f"{'.'.join(map(str, place))} = {str(value)[:40]!r}", True


def nudge_number(parts: Parts, rng: np.random.Generator) -> tuple[str, bool]:
    holder, key, place = _pick(rng, parts[0]["values"])
    old = holder[key]
    if isinstance(old, bool) or not isinstance(old, int | float):
        return change_value(parts, rng)
    holder[key] = [old + 1, old - 1, -old, old * 1000, old + 0.5, str(old), [old]][int(rng.integers(7))]
    return f"{'.'.join(map(str, place))}: {old!r} to {holder[key]!r}", True


def drop_key(parts: Parts, rng: np.random.Generator) -> tuple[str, bool]:
    holder, key, place = _pick(rng, parts[0]["values"])
    if isinstance(holder, dict):
        del holder[key]
    else:
        holder.pop(key)
    # Files of earlier versions lack parameters that came later; lists of names and options may be shorter.
    return f"without {'.'.join(map(str, place))}", "fitted" not in place or len(place) - place.index("fitted") > 2


def repeat_entry(parts: Parts, rng: np.random.Generator) -> tuple[str, bool]:
    lists = [place for place in _places(parts[0]["values"]) if isinstance(_at(parts[0]["values"], place), list)]
    if not lists:
        return nudge_number(parts, rng)
    place = lists[int(rng.integers(len(lists)))]
    entries = _at(parts[0]["values"], place)
    if entries:
        entries.append(copy.deepcopy(entries[int(rng.integers(len(entries)))]))
    return f"an entry of {'.'.join(map(str, place))} twice", True


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def _array(parts: Parts, rng: np.random.Generator) -> str:
    names = [name for name in parts[1] if not name.startswith("trace_")] or list(parts[1])
    return names[int(rng.integers(len(names)))]


def change_dtype(parts: Parts, rng: np.random.Generator) -> tuple[str, bool]:
    name = _array(parts, rng)
    dtype = str(rng.choice(["f4", "f8", ">f8", "i8", "i4", "u1", "?", "U5", "i2", "f2", "u8"]))
    before = parts[1][name].dtype
    with np.errstate(all="ignore"):
        try:
            parts[1][name] = parts[1][name].astype(dtype)
        except ValueError:
            parts[1][name] = np.ones(parts[1][name].shape, dtype)
    after = parts[1][name].dtype
    same = before.newbyteorder("=") == after.newbyteorder("=") or (before.kind in "iuU" and after.kind in "iuU")
    return f"{name} as {dtype}", bool(same or name in ("classes_", "tokens_"))  # labels may be of any kind


def change_shape(parts: Parts, rng: np.random.Generator) -> tuple[str, bool]:
    name = _array(parts, rng)
    A = parts[1][name]
    forms = [A[:-1], A[:0], A.ravel(), A[None], np.concatenate([A, A[:1]]), A.T, A[..., None], np.concatenate([A, A])]
    parts[1][name] = np.ascontiguousarray(forms[int(rng.integers(len(forms)))])
    return f"{name} of shape {parts[1][name].shape} for {A.shape}", parts[1][name].shape == A.shape or A.ndim == 1


def change_entry(parts: Parts, rng: np.random.Generator) -> tuple[str, bool]:
    name = _array(parts, rng)
    A = parts[1][name] = parts[1][name].copy()
    if not A.size:
        return change_value(parts, rng)
    odd: list[Any] = {
        "f": [0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320],
        "i": [0, 1, -1, 2, int(A.max()) + 1, np.iinfo(A.dtype).max if A.dtype.kind == "i" else 0],
        "u": [0, 1, 255, 128],
        "b": [True, False],
        "U": ["", "x", "zzz", "\ud800"[:0], "ü"],
    }[A.dtype.kind]
    value = odd[int(rng.integers(len(odd)))]
    with np.errstate(all="ignore"):
        A.reshape(-1)[int(rng.integers(A.size))] = value
    impossible = A.dtype.kind == "f" and not np.isfinite(value) and name in ("coef_", "intercept_", "parameters_")
    return f"an entry of {name} = {value!r}", not impossible


def change_all(parts: Parts, rng: np.random.Generator) -> tuple[str, bool]:
    name = _array(parts, rng)
    A = parts[1][name]
    how = int(rng.integers(4))
    flat = A.reshape(-1)
    changed = [rng.permutation(flat), flat[::-1], np.repeat(flat[:1], A.size), flat][how]
    parts[1][name] = np.ascontiguousarray(changed.reshape(A.shape))
    if how == 3 and A.dtype.kind in "fi":
        with np.errstate(all="ignore"):
            parts[1][name] = -A
    return f"{name} {('shuffled', 'reversed', 'constant', 'negated')[how]}", True


def swap_arrays(parts: Parts, rng: np.random.Generator) -> tuple[str, bool]:
    a, b = _array(parts, rng), _array(parts, rng)
    A, B = parts[1][a], parts[1][b]
    parts[1][a], parts[1][b] = B, A
    return f"{a} and {b} swapped", A.dtype == B.dtype and A.shape == B.shape


def drop_array(parts: Parts, rng: np.random.Generator) -> tuple[str, bool]:
    name = _array(parts, rng)
    del parts[1][name]
    return f"without the array {name}", False


def no_values(parts: Parts, rng: np.random.Generator) -> tuple[str, bool]:
    key = ["kind", "values", "version", "format", "library"][int(rng.integers(5))]
    parts[0][key] = ODD[int(rng.integers(len(ODD)))]
    return f"{key} = {str(parts[0][key])[:40]!r}", True


def other_kind(parts: Parts, rng: np.random.Generator) -> tuple[str, bool]:
    parts[0]["kind"] = KINDS[int(rng.integers(len(KINDS)))]
    return f"kind = {parts[0]['kind']}", True


CHANGES = [change_value, change_value, nudge_number, nudge_number, drop_key, repeat_entry, change_dtype, change_shape]
CHANGES += [change_entry, change_entry, change_all, swap_arrays, drop_array, no_values, other_kind]


def mutated(parts: Parts, rng: np.random.Generator) -> tuple[Parts, str, bool]:
    """A changed copy, what was changed, and whether it could be another legal model."""
    parts = copy.deepcopy(parts[0]), dict(parts[1])
    # Of two changes one may make good what the other broke: only single ones are judged by their answers.
    count = 1 if rng.random() < 0.8 else 2
    said, legal = [], count == 2
    for _ in range(count):
        try:
            what, fine = CHANGES[int(rng.integers(len(CHANGES)))](parts, rng)
        except (
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
            OverflowError,
        ):  # an earlier change left nothing to change
            continue
        said.append(what)
        legal = legal or fine
    return parts, "; ".join(said), legal


# What ever failed, as changes that are tried on every model that has such a part. Each returns None if there is none.


def _fitted(parts: Parts) -> dict[str, Any]:
    values = parts[0]["values"]
    return values["model"]["fitted"] if "model" in values else values["fitted"]


def _set(parts: Parts, name: str, value: Any) -> bool | None:
    if name not in parts[1]:
        return None
    parts[1][name] = value(parts[1][name])
    return True


def _one_more_state(parts: Parts) -> bool | None:
    """The segmentation fault of the issue: more states than there are parameters for."""
    states = _fitted(parts).get("states_")
    if not states or not states.get("items"):
        return None
    states["items"][0][1]["list"].append(99)
    return True


def _drop(parts: Parts, name: str) -> bool | None:
    return _fitted(parts).pop(name, None) and True


KEPT: dict[str, Any] = {
    "more states than parameters": _one_more_state,
    "NaN among parameters": lambda parts: _set(parts, "parameters_", lambda A: np.full(A.shape, np.nan)),
    "NaN among coefficients": lambda parts: _set(parts, "coef_", lambda A: np.full(A.shape, np.nan)),
    "half of the parameters": lambda parts: _set(parts, "parameters_", lambda A: A[: len(A) // 2]),
    "parameters of 32 bits": lambda parts: _set(parts, "parameters_", lambda A: (A + 0.1).astype(np.float32)),
    "parameters of 1e308": lambda parts: _set(parts, "parameters_", lambda A: np.full(A.shape, 1e308)),
    "coefficients of one column": lambda parts: _set(parts, "coef_", lambda A: A[..., :1]),
    "indices beyond": lambda parts: _set(parts, "state_index_", lambda A: A + 1_000_000),
    "indices below": lambda parts: _set(parts, "transition_index_", lambda A: A - 5),
    "indices twice": lambda parts: _set(parts, "transition_index_", lambda A: np.repeat(A[:1], len(A), 0)),
    "states without end": lambda parts: _set(parts, "cardinalities_", lambda A: np.full(len(A), 1 << 40)),
    "no trace": lambda parts: _drop(parts, "trace_"),
    "no labels": lambda parts: _drop(parts, "classes_"),
    "no parameters": lambda parts: _drop(parts, "parameters_"),
}


# Trying one, in a process of its own


def attempt(case: dict[str, Any]) -> tuple[str, str]:
    import partita

    try:
        model = partita.load(case["path"])
    except partita.ModelFileError as error:
        return judge(error)
    except Exception as error:
        outcome, text = judge(error)
        return outcome, f"load: {text}"
    if "reference" not in case:
        return "same", json.dumps([questions.plain(answer) for answer in questions.answers(model)])
    found = []
    try:
        for answer in questions.answers(model):
            found.append(answer)
            if not questions.well_formed(answer):
                return "silent", f"answered {str(questions.plain(answer))[:100]}"
    except Exception as error:
        outcome, text = judge(error)
        return outcome, f"in use: {text}"
    if json.dumps([questions.plain(answer) for answer in found]) == case["reference"]:
        return "same", ""
    return ("legal", "") if case["legal"] else ("silent", "answers differently")


def save_all(folder: str) -> dict[str, str]:
    """Fit every model and save it; the paths by name."""
    paths = {}
    for number, (name, case) in enumerate(CASES.items()):
        paths[name] = os.path.join(folder, f"{number}.partita")
        case.fitted().save(paths[name])
    return paths


def fitted(case: str) -> tuple[str, str]:
    """The models of `save_all`, made in the process of the cases."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return "same", json.dumps(save_all(case))


def main(budget_seconds: float, seed: int, most: int | None = None, worker: Worker | None = None) -> Counts:
    rng = np.random.default_rng(seed)
    ours = Worker() if worker is None else worker
    try:
        with scratch() as folder:
            paths = json.loads(ours.attempt("mutated_models:fitted", folder, 600)[1])
            ask = "mutated_models:attempt"
            references = {name: ours.attempt(ask, {"path": path}, 60)[1] for name, path in paths.items()}
            parts = {name: read_parts(path) for name, path in paths.items()}

            def cases() -> Iterator[tuple[str, Any]]:
                path = os.path.join(folder, "changed")
                for name, (what, made) in itertools.product(paths, KEPT.items()):
                    changed = copy.deepcopy(parts[name][0]), dict(parts[name][1])
                    if made(changed) is not None:
                        write_parts(path, changed)
                        yield f"{name}: {what}", {"path": path, "legal": False, "reference": references[name]}
                while True:
                    for name in paths:
                        changed, what, legal = mutated(parts[name], rng)
                        write_parts(path, changed)
                        yield f"{name}: {what}", {"path": path, "legal": legal, "reference": references[name]}

            return run_cases(ask, cases(), budget_seconds, most=most, worker=ours)
    finally:
        if worker is None:
            ours.stop()
