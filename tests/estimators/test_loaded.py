"""Estimators from files: every part is checked against the others before anything is computed."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

import partita as pt
from partita import ModelFileError
from partita.features import Templates
from partita.io import read_columns

X = np.random.default_rng(0).normal(size=(30, 3))
Y = np.arange(30) % 3
TOKENS, LABELS = [[["the"], ["cat"]], [["a"], ["cat"], ["sat"]]], [["D", "N"], ["D", "N", "V"]]
EDGES = np.array([[0, 1], [1, 2]])
GRAPHS = [(np.array([[1.0], [0.2], [0.9]]), EDGES), (np.array([[-1.0], [0.1], [-0.8]]), EDGES)]
STATES = np.random.default_rng(0).integers(0, 2, size=(40, 3))
FITS = {
    "softmax": lambda: pt.SoftmaxRegression().fit(X, Y),
    "latent": lambda: pt.LatentSoftmax(l2=0.1, random_state=0, max_iter=5, tol=1.0).fit(X, Y),
    "entropy": lambda: pt.MaxEnt(features=X[:20], equality=np.zeros(3)).fit(),
    "chain": lambda: pt.ChainCRF(start_end=True).fit(TOKENS, LABELS),
    "hidden": lambda: pt.HiddenChainCRF(n_hidden=2, random_state=0).fit(TOKENS, ["x", "y"]),
    "dynamic": lambda: pt.LatentDynamicCRF(n_hidden=2, random_state=0).fit(TOKENS, LABELS),
    "boltzmann": lambda: pt.BoltzmannChain().fit([["the", "cat"], ["a", "cat", "sat"]], LABELS),
    "tagger": lambda: pt.ColumnTagger(Templates.builtin("word"), pt.ChainCRF()).fit(
        read_columns(io.BytesIO(b"the D\ncat N\n\na D\ncat N\nsat V\n"))
    ),
    "graph": lambda: pt.GraphCRF(l2=0.1).fit(GRAPHS, [["on"] * 3, ["off"] * 3]),
    "markov": lambda: pt.MarkovNetwork.ising([(0, 1), (1, 2)], l2=0.1).fit(STATES),
    "matching": lambda: pt.MatchingCRF().fit(np.random.default_rng(0).normal(size=(4, 2, 3, 3)), [np.arange(3)] * 4),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file of every estimator."""
    folder = tmp_path_factory.mktemp("loaded")
    for name, fit in FITS.items():
        fit().save(folder / name)
    return folder


def changed(saved, tmp_path, name, change):
    """The path of a copy of a file in which `change(values, fitted, arrays)` changed something."""
    with zipfile.ZipFile(saved / name) as archive:
        content = {n: archive.read(n) for n in archive.namelist()}
    header = json.loads(content.pop("header.json"))
    arrays = {n[:-4]: np.load(io.BytesIO(data)) for n, data in content.items()}
    values = header["values"]
    change(values, values["model"]["fitted"] if name == "tagger" else values["fitted"], arrays)
    with zipfile.ZipFile(tmp_path / "m", "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for n, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(f"{n}.npy", buffer.getvalue())
    return tmp_path / "m"


@pytest.mark.parametrize("name", FITS)
def test_what_was_saved_loads_bit_for_bit(saved, tmp_path, name):
    for mapped in (False, True):
        copy = pt.load(changed(saved, tmp_path, name, lambda *parts: None), mmap=mapped)
        original = pt.load(saved / name)
        (values, arrays), (again, found) = original._pack(), copy._pack()
        assert again == values
        assert {n: (a.dtype, a.shape, a.tobytes()) for n, a in found.items()} == {
            n: (a.dtype, a.shape, a.tobytes()) for n, a in arrays.items()
        }


@pytest.mark.parametrize("name", FITS)
def test_attributes_that_are_new_do_not_matter(saved, tmp_path, name):
    """A file of a later version may hold more than this one knows."""
    assert pt.load(changed(saved, tmp_path, name, lambda values, fitted, arrays: fitted.update(later_=1))) is not None


@pytest.mark.parametrize("name", FITS)
def test_every_array_and_number_of_a_model_is_needed(saved, tmp_path, name):
    needed = {"trace_", "status_", "n_iter_"} | {
        key
        for key in ("coef_", "intercept_", "classes_", "parameters_", "log_probabilities_", "token_weights_", "factors_")
        if hasattr(getattr(pt.load(saved / name), "model", pt.load(saved / name)), key)
    }
    for key in sorted(needed):
        path = changed(saved, tmp_path, name, lambda values, fitted, arrays, key=key: fitted.pop(key))
        with pytest.raises(ModelFileError, match=f"{key} is missing"):
            pt.load(path)


def put(array, value):
    def change(values, fitted, arrays):
        arrays[array] = np.asarray(value(arrays[array]))

    return change


def say(key, value):
    return lambda values, fitted, arrays: fitted.update({key: value})


WRONG = [
    ("softmax", put("coef_", lambda A: A[:, :2]), r"coef_ must have shape \(3, 3\), got \(3, 2\)"),
    ("softmax", put("coef_", lambda A: A.astype(np.float32)), "coef_ must be an array of float64, got float32"),
    ("softmax", put("coef_", lambda A: A * np.nan), "coef_ must hold finite numbers, at most 1e[+]150, got nan"),
    ("softmax", put("intercept_", lambda A: A + 1e308), "intercept_ must hold finite"),
    ("softmax", put("classes_", lambda A: A[::-1]), "classes_ must be sorted, each label once"),
    ("softmax", put("log_prior_", lambda A: A - np.inf), "log_prior_ must hold logarithms of weights"),
    ("softmax", say("n_features_in_", 4), r"coef_ must have shape \(3, 4\)"),
    ("softmax", say("n_features_in_", -1), "n_features_in_ must be a whole number"),
    ("softmax", say("feature_names_in_", {"strings": ["a"]}), "feature_names_in_ must hold 3 names"),
    ("softmax", say("predict", 1), "'predict' is no fitted attribute of SoftmaxRegression"),
    ("softmax", say("status_", {"status": "x"}), "lacks 'x'"),
    ("softmax", put("trace_gap", lambda A: A[:1]), "trace_.gap must be a vector of float64, as long as"),
    ("softmax", lambda values, fitted, arrays: values["parameters"].update(l2=-1.0), "l2 must be"),
    ("softmax", lambda values, fitted, arrays: arrays.pop("coef_"), "the array 'coef_' is missing"),
    ("latent", put("coef_", lambda A: A[:, :1]), r"intercept_ must have shape \(3, 1\)"),
    ("entropy", put("probabilities_", lambda A: A / 2), "probabilities_ must sum to one"),
    ("entropy", put("log_probabilities_", lambda A: A[::-1]), "be those of log_probabilities_"),
    ("chain", put("state_index_", lambda A: A + 1000), "state_index_ must be from 0"),
    ("chain", put("state_index_", lambda A: -A), "state_index_ must be from 0"),
    ("chain", put("transition_index_", lambda A: np.repeat(A[:1], len(A), 0)), "transition_index_ holds a pair twice"),
    ("chain", put("vocabulary_offsets_", lambda A: A[::-1]), "offsets of a string table must rise"),
    ("chain", put("vocabulary_bytes_", lambda A: A[:-1]), "offsets of a string table must rise"),
    ("chain", say("hashing_", 7), "hashing_ is 7, but there are 4 attributes"),
    ("chain", say("start_end_", False), "arrays of this model do not fit together"),
    ("chain", put("precision_", lambda A: A[:-1]), "precision_ must have shape"),
    ("hidden", say("n_hidden_", 3), "forbidden_transitions_ must have shape"),
    ("hidden", put("forbidden_transitions_", lambda A: A | True), "forbidden_transitions_ forbids everything"),
    ("dynamic", say("n_hidden_", 10**6), "n_hidden_ must be a whole number"),
    ("boltzmann", put("token_weights_", lambda A: A[:-1]), "token_weights_ must have shape"),
    ("boltzmann", say("n_unseen_", 10**400), "n_unseen_ must be a whole number"),
    ("tagger", lambda values, fitted, arrays: values.update(width=1), "label_ must be a whole number from 0 to 0"),
    ("tagger", lambda values, fitted, arrays: values.update(columns=[5]), "columns must be a list of numbers below 2"),
    ("tagger", lambda values, fitted, arrays: values.update(reading={"path": "x"}), "reading must be options out of"),
    ("tagger", lambda values, fitted, arrays: values.update(summary={}), "summary must say 'version'"),
    (
        "tagger",
        lambda values, fitted, arrays: values["templates"]["templates"][0].update(fields=[[10**12, 0, "x"]]),
        "a field looks at most 10,000 tokens back or ahead, got 1,000,000,000,000",
    ),
    ("graph", say("widths_", {"list": [2, 3]}), "widths_ and constants_ of .* must be"),
    ("graph", say("kinds_", {"list": [{"tuple": ["node", "x"]}, {"tuple": ["edge", "x", "x"]}]}), "kinds_ must hold tuples"),
    ("graph", put("parameters_", lambda A: A[:-1]), r"parameters_ must have shape \(8\), got \(7,\)"),
    ("markov", say("factors_", {"list": [{"tuple": [0, 99]}]}), "factors_ must hold tuples of variables from 0 to 2"),
    (
        "markov",
        put("cardinalities_", lambda A: A + (1 << 40)),
        "does not fit into memory: tables of .* entries in all needs",
    ),
    ("markov", say("statistics_", "entries"), "parameters_ must have shape"),
    ("matching", say("kind_", "vertices"), "kind_ must be one of edges, nodes"),
    ("matching", put("parameters_", lambda A: A[None]), "parameters_ must have shape"),
]


@pytest.mark.parametrize(("name", "change", "message"), WRONG, ids=[f"{name}: {text}"[:50] for name, _, text in WRONG])
def test_parts_that_do_not_fit_are_named(saved, tmp_path, name, change, message):
    path = changed(saved, tmp_path, name, change)
    with pytest.raises(ValueError, match=message) as caught:
        pt.load(path)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, ModelFileError) or "memory" in message


def test_parameters_that_an_older_file_lacks_have_their_defaults(saved, tmp_path):
    path = changed(saved, tmp_path, "softmax", lambda values, fitted, arrays: values["parameters"].pop("class_weight"))
    assert pt.load(path).class_weight is None
