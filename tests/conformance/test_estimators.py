"""Every estimator of the zoo keeps the conventions: scikit-learn's, and ours about failures, threads, files and traces."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest
from questions import answers, told, well_formed
from sklearn.base import BaseEstimator, clone
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from zoo import CASES, contents, unchanged

import partita
from partita import ConvergenceWarning, LatentSoftmax, SoftmaxRegression, Status
from partita.core import parallel
from partita.estimators.persistence import SavedModel
from partita.report import ProgressPrinter

cases = pytest.mark.parametrize("name", CASES)
#: Without a trace of the whole: what they have seen is gone.
PIECES = ("SoftmaxRegression in pieces", "SoftmaxRegression on a stream", "ChainCRF in pieces")


def inner(model):
    """The model that was trained, of a tagger too."""
    return getattr(model, "model", model)


def parameters(model):
    """Constructor parameters as text: arrays and solvers too."""
    return {name: repr(value) for name, value in model.get_params(deep=True).items()}


def test_every_estimator_is_in_the_table():
    public = [getattr(partita, name) for name in partita.__all__]
    kinds = {kind for kind in public if inspect.isclass(kind) and issubclass(kind, BaseEstimator | SavedModel)}
    assert {type(case.made()) for case in CASES.values()} == kinds - {partita.SequenceData}


# scikit-learn's own checks, where a table of numbers and a label for each row are the data


def clusters_depend_on_the_order_of_rows(estimator):
    name = "check_sample_weight_equivalence_on_{}_data"
    reason = "k-means with weights is not k-means with repeated rows"
    kmeans = isinstance(estimator, LatentSoftmax) and estimator.init == "kmeans"
    return {name.format(kind): reason for kind in ("dense", "sparse")} if kmeans else {}


# Some checks compare two fits of one problem to 7 digits, which first-order solvers reach with a tighter tol.
@parametrize_with_checks(
    [
        SoftmaxRegression(),
        SoftmaxRegression(solver="majorize", tol=1e-10),
        SoftmaxRegression(solver="lbfgs", tol=1e-10),
        LatentSoftmax(),
        LatentSoftmax(l2=0.1, tol=1e-10),
        LatentSoftmax(l2=0.1, n_init=2, init="kmeans", tol=1e-10),
        LatentSoftmax(n_hidden=1, l2=0.1, solver="majorize", tol=1e-10),
    ],
    expected_failed_checks=clusters_depend_on_the_order_of_rows,
)
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@cases
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_set_params,
    ],
    ids=lambda check: check.__name__,
)
def test_scikit_learn_conventions_without_data(name, check):
    estimator = CASES[name].made()
    estimator.get_params()  # of which some of these checks would say nothing
    check(name, estimator)


@cases
def test_parameters_are_what_was_given_before_and_after_a_fit(name):
    case = CASES[name]
    model = case.made()
    before = parameters(model)
    twin = clone(model)
    assert parameters(twin) == before
    assert type(model)(**model.get_params(deep=False)).get_params().keys() == model.get_params().keys()
    for key, value in case.options.items():
        assert getattr(inner(model), key) is value
    case.trained(model)
    assert parameters(model) == before
    assert not [key for key in vars(clone(model)) if key.endswith("_")]
    other = clone(model).set_params(**clone(model).get_params())
    assert parameters(other) == before


@cases
def test_a_clone_fits_to_the_same(name):
    case = CASES[name]
    model = case.fitted()
    assert told(case.trained(clone(model))) == told(model)


# failures


@cases
@pytest.mark.parametrize("fitted", [False, True])
def test_a_fit_with_wrong_parameters_changes_nothing(name, fitted):
    case = CASES[name]
    model = case.fitted() if fitted else case.made()
    inner(model).tol = "small"
    before = contents(model)
    with pytest.raises(ValueError, match="tol must be"):
        case.fit(model)
    assert unchanged(before, contents(model))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.bad])
@pytest.mark.parametrize("fitted", [False, True])
def test_a_fit_with_wrong_data_changes_nothing(name, fitted):
    case = CASES[name]
    model = case.fitted() if fitted else case.made()
    before = contents(model)
    with pytest.raises(ValueError, match=r"\w+ \w+ \w+"):
        case.bad(model)
    assert unchanged(before, contents(model))
    if fitted:
        case.use(model)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if name not in PIECES and case.iterates])
@pytest.mark.parametrize("fitted", [False, True])
def test_an_interrupt_keeps_the_best_or_changes_nothing(name, fitted, monkeypatch):
    case = CASES[name]
    model = case.fitted() if fitted else case.made()
    inner(model).verbose = 2
    before = contents(model)

    def interrupt(self, progress):
        if progress.iteration == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressPrinter, "__call__", interrupt)
    try:
        case.trained(model)
    except KeyboardInterrupt:
        assert unchanged(before, contents(model))
    else:
        assert inner(model).status_ is Status.INTERRUPTED
        assert all(map(well_formed, answers(copy.deepcopy(model))))


# threads and files


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if hasattr(inner(case.made()), "n_jobs")])
def test_threads_change_no_bit(name, monkeypatch):
    monkeypatch.setattr(parallel, "OPERATIONS_PER_CHUNK", 1_000)  # so that small work is cut up
    found = [CASES[name].fitted(n_jobs=n_jobs) for n_jobs in (1, 2)]
    one, two = (inner(model) for model in found)
    for key in {"coef_", "parameters_", "token_weights_"} & set(vars(one)):
        np.testing.assert_array_equal(getattr(one, key), getattr(two, key))
    np.testing.assert_array_equal(one.trace_.objective, two.trace_.objective)
    assert told(found[0]) == told(found[1])


@cases
def test_files_and_copies_answer_as_the_model_does(name, tmp_path):
    model = CASES[name].fitted()
    model.save(tmp_path / "model")
    twins = [
        partita.load(tmp_path / "model"),
        type(model).load(tmp_path / "model"),
        partita.load(tmp_path / "model", mmap=True),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ]
    expected = told(model, learns=False)
    assert all(map(well_formed, answers(CASES[name].fitted())))
    for twin in twins:
        assert type(twin) is type(model)
        assert told(twin, learns=False) == expected
    for twin in twins:
        assert parameters(twin) == parameters(model)
    assert len({told(twin) for twin in twins}) == 1  # all go on alike; of a stream, the model itself knows its curvature


# what is told about the fit


@pytest.mark.parametrize("name", [name for name in CASES if name not in PIECES])
@pytest.mark.parametrize("limit", [0, 1, None])
def test_trace_status_and_iterations_agree(name, limit):
    model = inner(CASES[name].fitted(**({} if limit is None else {"max_iter": limit})))
    trace, status, n_iter = model.trace_, model.status_, model.n_iter_
    assert isinstance(status, Status)
    assert isinstance(n_iter, int)
    columns = [trace.objective, trace.gradient_norm, trace.gap, trace.seconds]
    assert {len(column) for column in columns} == {len(trace)}
    assert n_iter + 1 <= len(trace) <= n_iter + 2  # one more if an earlier iterate is returned, or a step refines the last
    assert np.all(np.diff(trace.seconds) >= 0.0)
    assert np.isfinite(trace.objective).all()
    assert np.all(trace.gap >= 0.0)
    if limit is not None:
        assert n_iter <= limit
        assert status in (Status.MAX_ITER, Status.CONVERGED, Status.PRECISION)
    elif CASES[name].iterates:
        assert status.ok or status is Status.PRECISION
        assert n_iter >= 1


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if name not in PIECES and case.iterates])
def test_a_fit_that_stops_short_warns(name):
    case = CASES[name]
    model = case.made(max_iter=1)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        case.fit(model)
    told_so = [str(warning.message) for warning in given if issubclass(warning.category, ConvergenceWarning)]
    assert bool(told_so) == (not inner(model).status_.ok)


@pytest.mark.parametrize("name", PIECES)
def test_a_model_in_pieces_says_that_it_is_one(name):
    model = CASES[name].fitted()
    assert model.status_ is Status.STREAM
    assert model.n_iter_ >= 1
