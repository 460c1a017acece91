"""Parameters of constructors are declared once, and a value that makes no sense is refused by name before any work."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import partita
from partita.core import parameters
from partita.core.parameters import anything
from partita.estimators.trained import Trained

sys.path.insert(0, str(Path(__file__).parent))
from zoo import CASES

CLASSES = {
    name: cls for name in partita.__all__ if isinstance(cls := getattr(partita, name), type) and issubclass(cls, Trained)
}
#: A case of each class, to fit.
ZOO = {type(case.made()): case for case in reversed(CASES.values())}
DECLARED = [(name, parameter) for name, cls in CLASSES.items() for parameter in cls.PARAMETERS]
#: What only data can tell from sense: moments and their prior, and the edges of a network.
JUDGED_WITH_DATA = {
    "MaxEnt": {"features", "equality", "inequality", "prior"},
    "BayesianNetwork": {"edges"},
}


class Nonsense:
    """What no parameter can be."""

    def __repr__(self) -> str:
        return "<nonsense>"


def test_the_estimators_are_found():
    assert {"SoftmaxRegression", "LatentSoftmax", "MaxEnt", "GraphCRF", "MarkovNetwork", "MatchingCRF"} <= set(CLASSES)


@pytest.mark.parametrize("name", CLASSES)
def test_every_parameter_is_declared(name):
    signature = inspect.signature(CLASSES[name].__init__)
    assert set(CLASSES[name].PARAMETERS) == set(signature.parameters) - {"self"}
    left = {parameter for parameter, check in CLASSES[name].PARAMETERS.items() if check is anything}
    assert left == JUDGED_WITH_DATA.get(name, set())


@pytest.mark.parametrize("name", CLASSES)
def test_defaults_pass_their_checks(name):
    for parameter in inspect.signature(CLASSES[name].__init__).parameters.values():
        if parameter.default is not inspect.Parameter.empty:
            CLASSES[name].PARAMETERS[parameter.name](parameter.name, parameter.default)


@pytest.mark.parametrize(
    ("name", "parameter"), [pair for pair in DECLARED if CLASSES[pair[0]].PARAMETERS[pair[1]] is not anything]
)
def test_nonsense_is_refused_by_its_check(name, parameter):
    with pytest.raises(ValueError, match=parameter):
        CLASSES[name].PARAMETERS[parameter](parameter, Nonsense())


@pytest.mark.parametrize(("name", "parameter"), DECLARED)
def test_nonsense_is_refused_by_fit_and_changes_nothing(name, parameter):
    case = ZOO[CLASSES[name]]
    model = case.made().set_params(**{parameter: Nonsense()})
    before = dict(vars(model))
    with pytest.raises(ValueError, match=parameter):
        case.fit(model)
    assert vars(model) == before


#: Values on either side of what a check allows.
EDGES = [
    (parameters.real(0.0), [0.0, 1, 1e300, np.float32(2.0)], [-1e-300, np.nan, np.inf, True, "1", None]),
    (parameters.real(0.0, strict=True), [5e-324], [0.0, 0]),
    (parameters.real(0.5, 1.0), [0.5, 1.0, 1], [np.nextafter(0.5, 0.0), np.nextafter(1.0, 2.0), 2]),
    (parameters.real(0.0, optional=True), [None, 0.0], [-1.0]),
    (parameters.real(), [-1e300, 0], [-np.inf, np.nan]),
    (parameters.count(1), [1, np.int64(3)], [0, 1.0, True, None, "2"]),
    (parameters.count(0, optional=True), [None, 0], [-1]),
    (parameters.choice("a", "b"), ["a"], ["c", None, 1]),
    (parameters.flag, [True, np.bool_(False)], [0, 1, None, "yes"]),
    (parameters.threads, [None, 1, -1], [0, 1.5, True]),
    (parameters.verbosity, [0, True, 2], [-1, 0.5, None]),
    (parameters.seed, [None, 0, np.int32(7), np.random.default_rng(0), np.random.RandomState(0)], [-1, 1.0, "x", True]),
    (parameters.array(), [None, [1.0, 2.0], (1, 2), np.ones(3)], ["x", ["a"], {1: 2.0}]),
    (parameters.items("a list"), [None, [], {"a": 1}, np.ones(2)], ["abc", 3, b"x"]),
    (parameters.instance(dict, what="a dict"), [None, {}], [[], "x"]),
    (parameters.instance(dict, what="a dict", optional=False), [{}], [None]),
]


@pytest.mark.parametrize(("check", "right", "wrong"), EDGES)
def test_checks_end_where_they_say(check, right, wrong):
    for value in right:
        check("n_jobs", value)
    for value in wrong:
        with pytest.raises(ValueError, match="must be"):
            check("n_jobs", value)


def test_the_check_of_a_seed_draws_nothing():
    ours, theirs = np.random.RandomState(0), np.random.RandomState(0)
    parameters.seed("random_state", ours)
    assert ours.randint(2**31) == theirs.randint(2**31)
