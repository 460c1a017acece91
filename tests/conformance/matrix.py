"""Every estimator with every method: what works, and with which sentence the rest is refused.

``python tests/conformance/matrix.py`` writes `docs/matrix.md`; `test_matrix.py` runs the same cells, and fails where a cell
that works finds no optimum, where one is refused without a reason, or where the page says something else.

A cell is a short training, or a question to a trained model. What it finds is compared with what is known otherwise: other
solvers must reach the value of the plain optimum; where the objective itself is another (l1, constraints, weights, priors),
no feasible step may promise less by slopes that are taken from `log_likelihood`, by finite differences.
"""

from __future__ import annotations

import copy
import itertools
import pickle
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import zoo
from numpy.typing import NDArray
from scipy.optimize import linprog

import partita as pt
from partita.constraints import Ball, Box, CvxpySet, Linear, Monotone, Simplex, Ties

FloatArray = NDArray[np.float64]

L2, L1 = 0.5, 0.7
#: Relative excess over the optimum that solvers may leave; stochastic ones more.
CLOSE, NEAR = 1e-6, 1e-3


@dataclass(frozen=True)
class Subject:
    """An estimator of the matrix.

    Attributes
    ----------
    make : callable
        The estimator from options.
    data : tuple
        Arguments of `fit` and `log_likelihood`.
    penalized, free : tuples of str
        Fitted attributes that are weights, with and without a penalty.
    partial, sets : tuples or None
        The same data with labels that are unknown, or known to be one of a set.
    options : dict
        Those it is made with.
    convex : bool
        Whether its objective is: then all solvers reach one value.
    new : tuple
        Arguments of what is asked of a trained model.
    beside : dict
        What `fit` and `log_likelihood` take beside the data.
    """

    make: Callable[..., Any]
    data: tuple[Any, ...]
    penalized: tuple[str, ...]
    free: tuple[str, ...] = ()
    partial: tuple[Any, ...] | None = None
    sets: tuple[Any, ...] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    convex: bool = True
    new: tuple[Any, ...] = ()
    beside: dict[str, Any] = field(default_factory=dict)

    def fit(self, data: tuple[Any, ...] | None = None, weights: Any = None, **options: Any) -> Any:
        """A trained model, without warnings."""
        model = self.make(**{**self.options, **options})
        given = {} if weights is None else {"sample_weight": weights}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(*(self.data if data is None else data), **given, **self.beside)

    def weights(self, model: Any) -> FloatArray:
        """All weights as a vector, penalised ones first."""
        return np.concatenate([np.ravel(getattr(model, name)) for name in (*self.penalized, *self.free)])

    def moved(self, model: Any, weights: FloatArray) -> Any:
        """A copy of the model with other weights."""
        other, at = copy.copy(model), 0
        for name in (*self.penalized, *self.free):
            old = getattr(model, name)
            setattr(other, name, weights[at : at + old.size].reshape(old.shape))
            at += old.size
        return other

    def value(self, model: Any, l1: float = 0.0, weights: Any = 1.0, l2: float = L2) -> float:
        """The penalised objective, from what the model says about its data."""
        theta = np.concatenate([np.ravel(getattr(model, name)) for name in self.penalized])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loss = -float(np.sum(weights * np.asarray(model.log_likelihood(*self.data, **self.beside))))
        return loss + 0.5 * l2 * float(theta @ theta) + l1 * float(np.abs(theta).sum())

    def slope(self, model: Any, weights: Any = 1.0, l2: float = L2) -> FloatArray:
        """The gradient of the smooth part, by central differences."""
        theta = self.weights(model)
        step = 1e-5
        out = np.empty(len(theta))
        for j in range(len(theta)):
            move = np.zeros(len(theta))
            move[j] = step
            ends = [self.value(self.moved(model, theta + sign * move), 0.0, weights, l2) for sign in (1.0, -1.0)]
            out[j] = (ends[0] - ends[1]) / (2.0 * step)
        return out


@dataclass(frozen=True)
class Cell:
    """What came of a method on an estimator: `works`, or is refused with a `sentence`, or is `missing`, or is `wrong`."""

    state: str
    sentence: str = ""


def _sentence(error: BaseException) -> str:
    """What an error says, without what was given and without the advice at its end."""
    text = re.sub(r"\s+", " ", str(error)).strip()
    text = re.split(r"[;,] got |\. Choose a solver", text)[0]
    text = re.sub(r"^solver .* cannot minimise \w+: ", "", text)
    return text.rstrip(".") + "."


def tried(run: Callable[[], Any]) -> Cell:
    """A cell from an attempt."""
    try:
        run()
    except AssertionError as error:
        return Cell("wrong", str(error))
    except (ValueError, NotImplementedError, pt.CapabilityError) as error:
        return Cell("refused", _sentence(error))
    except (TypeError, AttributeError) as error:
        if isinstance(error, TypeError) and "unexpected keyword" not in str(error):
            raise
        return Cell("missing", str(error))
    return Cell("works")


# the estimators, each on a little data


def _unknown(labels: Sequence[Any], every: int = 3) -> list[list[Any]]:
    return [[None if (i + j) % every == 0 else label for j, label in enumerate(row)] for i, row in enumerate(labels)]


def _either(labels: Sequence[Any], every: int = 3) -> list[list[Any]]:
    return [[{"a", "b"} if (i + j) % every == 0 else label for j, label in enumerate(row)] for i, row in enumerate(labels)]


def _class_sets() -> list[Any]:
    return [{int(c), (int(c) + 1) % 3} if i % 4 == 0 else int(c) for i, c in enumerate(zoo.Y)]


def _centred() -> list[Any]:
    middle = np.mean([F for F, _ in zoo.GRAPHS], axis=(0, 1))
    return [(F - middle, edges) for F, edges in zoo.GRAPHS]


def _partners(given: Callable[[int], Any]) -> list[list[Any]]:
    return [[given(int(j)) if (i + r) % 3 == 0 else int(j) for r, j in enumerate(y)] for i, y in enumerate(zoo.PAIRS)]


def _open_heads(given: Callable[[int, int, int], Any]) -> list[list[Any]]:
    return [
        [given(int(h), d, len(heads)) if (i + d) % 3 == 0 else int(h) for d, h in enumerate(heads, start=1)]
        for i, heads in enumerate(zoo.HEADS)
    ]


def _state_sets() -> list[list[Any]]:
    """With two states, a set of both is all that a set can say."""
    return [[{0, 1} if (i + j) % 7 == 0 else int(s) for j, s in enumerate(row)] for i, row in enumerate(zoo.STATES)]


GRAPHS = _centred()
HOLES = np.where(np.random.default_rng(1).random(zoo.STATES.shape) < 0.1, -1, zoo.STATES)

SUBJECTS = {
    "SoftmaxRegression": Subject(
        pt.SoftmaxRegression,
        (zoo.X, zoo.Y),
        ("coef_",),
        ("intercept_",),
        partial=(zoo.X, [None if i % 5 == 0 else int(c) for i, c in enumerate(zoo.Y)]),
        sets=(zoo.X, _class_sets()),
        options={"l2": L2, "tol": 1e-8},
    ),
    "LatentSoftmax": Subject(
        pt.LatentSoftmax,
        (zoo.X, zoo.Y),
        ("coef_",),
        ("intercept_",),
        partial=(zoo.X, [None if i % 5 == 0 else int(c) for i, c in enumerate(zoo.Y)]),
        sets=(zoo.X, _class_sets()),
        options={"l2": L2, "random_state": 0},
        convex=False,
    ),
    "ChainCRF": Subject(
        pt.ChainCRF,
        (zoo.ATTRIBUTES, zoo.TAGS),
        ("parameters_",),
        partial=(zoo.ATTRIBUTES, _unknown(zoo.TAGS)),
        sets=(zoo.ATTRIBUTES, _either(zoo.TAGS)),
        options={"l2": L2, "tol": 1e-8},
    ),
    "HiddenChainCRF": Subject(
        pt.HiddenChainCRF,
        (zoo.ATTRIBUTES, zoo.WHOLE),
        ("parameters_",),
        partial=(zoo.ATTRIBUTES, [None if i % 5 == 0 else label for i, label in enumerate(zoo.WHOLE)]),
        sets=(zoo.ATTRIBUTES, [{"long", "short"} if i % 5 == 0 else label for i, label in enumerate(zoo.WHOLE)]),
        options={"l2": L2, "n_hidden": 2, "random_state": 0, "tol": 1e-8},
        convex=False,
    ),
    "LatentDynamicCRF": Subject(
        pt.LatentDynamicCRF,
        (zoo.ATTRIBUTES, zoo.TAGS),
        ("parameters_",),
        partial=(zoo.ATTRIBUTES, _unknown(zoo.TAGS)),
        sets=(zoo.ATTRIBUTES, _either(zoo.TAGS)),
        options={"l2": L2, "n_hidden": 2, "random_state": 0, "tol": 1e-8},
        convex=False,
    ),
    "BoltzmannChain": Subject(
        pt.BoltzmannChain,
        (zoo.TOKENS, zoo.TAGS),
        ("token_weights_", "transition_weights_"),
        partial=(zoo.TOKENS, _unknown(zoo.TAGS)),
        sets=(zoo.TOKENS, _either(zoo.TAGS)),
        options={"l2": L2, "tol": 1e-8},
    ),
    "GraphCRF": Subject(
        pt.GraphCRF,
        (GRAPHS, zoo.NODES),
        ("parameters_",),
        partial=(GRAPHS, [np.where(np.arange(4) == i % 4, -1, y) for i, y in enumerate(zoo.NODES)]),
        sets=(GRAPHS, [[{0, 1} if j == i % 4 else int(c) for j, c in enumerate(y)] for i, y in enumerate(zoo.NODES)]),
        options={"l2": L2, "fit_intercept": False, "tol": 1e-8},
    ),
    "MarkovNetwork": Subject(
        lambda **options: pt.MarkovNetwork.ising(zoo.PATH, **options),
        (zoo.STATES,),
        ("parameters_",),
        partial=(HOLES,),
        sets=(_state_sets(),),
        options={"l2": L2, "tol": 1e-8},
    ),
    "MatchingCRF": Subject(
        pt.MatchingCRF,
        (zoo.MATCHES, zoo.PAIRS),
        ("parameters_",),
        partial=(zoo.MATCHES, _partners(lambda j: None)),
        sets=(zoo.MATCHES, _partners(lambda j: {j, (j + 1) % 3})),
        options={"l2": L2, "tol": 1e-9},
    ),
    "DependencyCRF": Subject(
        pt.DependencyCRF,
        (zoo.TOKENS, zoo.HEADS),
        ("parameters_",),
        partial=(zoo.TOKENS, _open_heads(lambda h, d, n: None)),
        sets=(zoo.TOKENS, _open_heads(lambda h, d, n: {h, 0 if d != 1 and h else n if d != n else h})),
        options={"l2": L2, "tol": 1e-7},
    ),
    "OracleCRF": Subject(
        pt.OracleCRF, (zoo.PARTS, zoo.CHOSEN), ("parameters_",), options={"oracle": "two best parts", "l2": L2, "tol": 1e-6}
    ),
    "BayesianNetwork": Subject(
        lambda **options: pt.BayesianNetwork([("a", "b"), ("b", "c"), ("b", "d")], **options),
        (zoo.frame(),),
        (),
        partial=(zoo.frame().astype(object).where(np.arange(60)[:, None] % 4 != np.arange(4), None),),
        options={"alpha": L2},
    ),
}

SOLVERS: dict[str, Any] = {
    "auto": "auto",
    "newton": "newton",
    "lbfgs": "lbfgs",
    "cg": "cg",
    "steepest": "steepest",
    "majorize": "majorize",
    "majorize, low rank": pt.Majorize(rank=2),
    "sgd": pt.SGD(batch_size=5, patience=20),  # steps that shrink gain less in a few epochs than their noise
    "stochastic": pt.StochasticBound(batch_size=5, patience=20),
    "stochastic_start": pt.StochasticStart(pt.LBFGS()),
    "em": "em",
    "block_frank_wolfe": "block_frank_wolfe",
}
SETS = ("box", "linear", "ties", "monotone", "simplex", "ball", "cvxpy")
STOCHASTIC = ("sgd", "stochastic")
LIKELIHOODS: dict[str, Any] = {
    "full": "full",
    "bethe": "bethe",
    "pseudo": "pseudo",
    "orders 1 and 2": pt.CompositeLikelihood({1: 1.0, 2: 0.5}),
    "pseudo, refined": pt.CompositeLikelihood({1: 1.0}, refine="full"),
}


@cache
def plain(name: str) -> Any:
    """The model trained with the defaults."""
    return SUBJECTS[name].fit()


def _optimum(name: str, model: Any, close: float = CLOSE) -> None:
    """A model must be as good as the plain one; of an objective that is not convex, at a stationary point."""
    subject = SUBJECTS[name]
    best, found = subject.value(plain(name)), subject.value(model)
    if subject.convex:
        assert found - best <= close * abs(best), f"{found:.9g} where {best:.9g} is the optimum"
    else:
        slope = np.abs(subject.slope(model)).max()
        assert slope <= 100.0 * close * abs(best), f"a slope of {slope:.1e} is left"


def _solver(name: str, solver: str) -> None:
    options: dict[str, Any] = {"solver": SOLVERS[solver]}
    if solver in (*STOCHASTIC, "steepest"):
        options["max_iter"] = 2000
    if solver == "block_frank_wolfe":
        options |= {"likelihood": "bethe", "tol": 1e-4} if name != "OracleCRF" else {}
    model = SUBJECTS[name].fit(**options)
    if solver == "block_frank_wolfe":
        assert model.gap_ <= 2e-3 * abs(model.trace_.objective[-1]) + 1e-2
        return
    _optimum(name, model, NEAR if solver in STOCHASTIC else CLOSE)


def _promise(slope: FloatArray, theta: FloatArray, penalized: int, l1: float, polyhedron: dict[str, Any]) -> float:
    """How much a feasible step of at most one in each weight could gain, to first order."""
    d = len(theta)
    bounds = [(t - 1.0, t + 1.0) for t in theta]
    lower, upper = polyhedron.get("lower"), polyhedron.get("upper")
    if lower is not None:
        bounds = [(max(a, lo), min(b, hi)) for (a, b), lo, hi in zip(bounds, lower, upper, strict=True)]
    rows, limits = [np.zeros((0, 2 * d))], [np.zeros(0)]
    for sign in (1.0, -1.0):  # t >= |z|
        rows.append(np.hstack([sign * np.eye(d), -np.eye(d)]))
        limits.append(np.zeros(d))
    if "A" in polyhedron:
        rows.append(np.hstack([polyhedron["A"], np.zeros_like(polyhedron["A"])]))
        limits.append(polyhedron["b"])
    cost = np.concatenate([slope, np.where(np.arange(d) < penalized, l1, 0.0)])
    equal = polyhedron.get("A_eq")
    found = linprog(
        cost,
        np.vstack(rows),
        np.concatenate(limits),
        None if equal is None else np.hstack([equal, np.zeros_like(equal)]),
        polyhedron.get("b_eq"),
        [*bounds, *[(0.0, None)] * d],
    )
    assert found.status == 0, f"linear program: {found.message}"
    here = float(slope @ theta) + l1 * float(np.abs(theta[:penalized]).sum())
    return here - float(found.fun)


def _stationary(name: str, model: Any, l1: float = 0.0, weights: Any = 1.0, l2: float = L2, **polyhedron: Any) -> None:
    """No feasible step promises to lower the objective, by slopes that are finite differences of `log_likelihood`."""
    subject = SUBJECTS[name]
    theta = subject.weights(model)
    penalized = sum(np.size(getattr(model, part)) for part in subject.penalized)
    gain = _promise(subject.slope(model, weights, l2), theta, penalized, l1, polyhedron)
    value = subject.value(model, l1, weights, l2)
    assert gain <= 1e-3 * abs(value), f"a feasible step promises {gain:.1e} of {value:.6g}"


def _penalty(name: str, kind: str) -> None:
    if kind == "l2":
        plain(name)
        if SUBJECTS[name].penalized:
            _stationary(name, plain(name))
        return
    l2 = L2 if kind == "l1 and l2" else 0.0
    model = SUBJECTS[name].fit(l1=L1, l2=l2)
    _stationary(name, model, L1, l2=l2)


def _ties(name: str) -> tuple[Any, list[int]]:
    """A tie of two weights, and where these are among all."""
    if name == "MarkovNetwork":
        return Ties(factors=[(0, 1), (1, 2)]), [4, 5]
    if name == "GraphCRF":
        return Ties(transitions=[(0, 1), (1, 0)]), [5, 6]
    model = plain(name)
    if hasattr(model, "chain_"):
        layout = model.chain_.layout
        pairs, first = layout.transitions[:2], layout.sizes[0]
        names = layout.classes.tolist()
        return Ties(transitions=[(names[a], names[b]) for a, b in pairs.tolist()]), [first, first + 1]
    if name == "BoltzmannChain":
        return Ties([[(0, 0), (1, 0)]]), [0, 1]
    return Ties(features=[0, 1], **({"classes": [0]} if name in ("SoftmaxRegression", "LatentSoftmax") else {})), [0, 1]


def _set(name: str, kind: str) -> tuple[Any, dict[str, Any]]:
    """A constraint that binds, and the same as a polyhedron of all weights."""
    subject = SUBJECTS[name]
    theta = subject.weights(plain(name))
    d, penalized = len(theta), sum(np.size(getattr(plain(name), part)) for part in subject.penalized)
    rows = getattr(plain(name), "coef_", theta[None, :penalized])
    shape = (penalized // rows.shape[-1], rows.shape[-1])
    eye, inside = np.eye(d), np.arange(d) < penalized
    if kind == "box":
        return Box(-0.05, 0.1), {"lower": np.where(inside, -0.05, -np.inf), "upper": np.where(inside, 0.1, np.inf)}
    if kind == "linear":
        A = np.where(inside, np.cos(np.arange(d)), 0.0)
        top = float(A @ theta) - 0.2
        return Linear(A[None, :penalized], upper=top), {"A": A[None], "b": [top]}
    if kind == "ties":
        constraint, (a, b) = _ties(name)
        return constraint, {"A_eq": (eye[a] - eye[b])[None], "b_eq": [0.0]}
    places = np.arange(penalized).reshape(shape)
    if kind == "monotone":
        steps = [(row[j], row[j + 1]) for row in places for j in range(shape[1] - 1)]
        return Monotone(), {"A": np.array([eye[a] - eye[b] for a, b in steps]), "b": np.zeros(len(steps))}
    if kind == "simplex":
        sums = np.array([np.isin(np.arange(d), row).astype(float) for row in places])
        return Simplex(0.5), {"A_eq": sums, "b_eq": np.full(len(sums), 0.5), "lower": np.where(inside, 0.0, -np.inf)}
    radius = 0.5 * float(np.linalg.norm(theta[:penalized]))
    if kind == "ball":
        return Ball(radius), {"radius": radius}
    import cvxpy  # not at the top: it loads a HiGHS beside which OR-tools' own does not load

    return CvxpySet(lambda w: [cvxpy.sum_squares(w) <= radius**2]), {"radius": radius}


def _constrained(name: str, kind: str, l1: float = 0.0) -> None:
    if not SUBJECTS[name].penalized:
        SUBJECTS[name].fit(constraints=[])
    constraint, polyhedron = _set(name, kind)
    options = {"l1": l1} if l1 else {}
    if "radius" in polyhedron and not SUBJECTS[name].convex:
        # nearer, the accuracy of programs over cones is in the way; steps of bounds are short, so that it takes many
        options |= {"tol": 1e-6, "max_iter": 5000}
    model = SUBJECTS[name].fit(constraints=[constraint], **options)
    if name == "ChainCRF" and l1:  # it forgets weights that are zero
        layouts = plain(name).chain_.layout, model.chain_.layout
        kept = layouts[0].align(np.arange(layouts[0].size, dtype=float), layouts[1]).astype(int)
        polyhedron |= {key: polyhedron[key][..., kept] for key in ("lower", "upper", "A") if key in polyhedron}
    if "radius" not in polyhedron:
        if "lower" in polyhedron:
            polyhedron = {"upper": np.full(len(polyhedron["lower"]), np.inf), **polyhedron}
        _stationary(name, model, l1, **polyhedron)
        return
    subject = SUBJECTS[name]
    theta, slope = subject.weights(model), subject.slope(model)
    penalized = sum(np.size(getattr(model, part)) for part in subject.penalized)
    inner = theta[:penalized]
    assert abs(np.linalg.norm(inner) / polyhedron["radius"] - 1.0) <= 1e-6, "not on the ball, which binds"
    multiplier = -float(slope[:penalized] @ inner) / polyhedron["radius"] ** 2
    assert multiplier >= 0.0, "the slope points into the ball"
    slope[:penalized] += multiplier * inner
    assert np.abs(slope).max() <= 1e-3 * abs(subject.value(model)), f"a slope of {np.abs(slope).max():.1e} is left"


#: Estimators without a parameter `likelihood`.
ONLY_FULL = ("SoftmaxRegression", "LatentSoftmax", "HiddenChainCRF", "LatentDynamicCRF", "DependencyCRF")


def _likelihood(name: str, kind: str) -> None:
    if kind == "full" and name in ONLY_FULL:
        _optimum(name, plain(name))  # they have no other
        return
    if kind == "full" and name == "BayesianNetwork":
        plain(name)
        return
    model = SUBJECTS[name].fit(likelihood=LIKELIHOODS[kind])
    if kind == "full":
        _optimum(name, model)
        return
    assert np.isfinite(model.trace_.objective[-1])
    if kind == "bethe":  # another function than the likelihood: certified
        assert model.gap_ <= 1e-3 * abs(model.trace_.objective[-1]), f"a gap of {model.gap_:.1e}"
        return
    best = -SUBJECTS[name].value(plain(name))
    assert -SUBJECTS[name].value(model) <= best + CLOSE * abs(best), "above the likelihood's own optimum"


def _labels(name: str, kind: str) -> None:
    subject = SUBJECTS[name]
    if kind == "full":
        _optimum(name, plain(name)) if subject.penalized else plain(name)
        return
    data = subject.partial if kind == "partial" else subject.sets
    if data is None:
        raise AttributeError(f"{name} has no {kind} labels in this table")
    model = subject.fit(data)
    if subject.penalized:
        hidden = Subject(subject.make, data, subject.penalized, subject.free, options=subject.options)
        gain = np.abs(hidden.slope(model)).max()
        assert gain <= 1e-3 * abs(hidden.value(model)), f"a slope of {gain:.1e} is left"


def _weighted(name: str, kind: str) -> None:
    subject = SUBJECTS[name]
    if kind == "class":
        model = subject.fit(class_weight="balanced")
        assert np.abs(subject.weights(model) - subject.weights(plain(name))).max() > 1e-6, "weights change nothing"
        return
    count = len(subject.data[0])
    weights = 1.0 + (np.arange(count) % 3)
    model = subject.fit(weights=weights)
    if subject.penalized:
        _stationary(name, model, weights=weights)


def _offset(name: str, kind: str) -> None:
    """Numbers that are added to the scores of labels: of each example, or the logarithms of a prior of all."""
    subject = SUBJECTS[name]
    count, rng = len(subject.data[0]), np.random.default_rng(5)
    offset = np.log(np.tile([0.2, 1.0, 0.5], (count, 1))) if kind == "prior" else rng.standard_normal((count, 3))
    given: Any = offset
    if name == "GraphCRF":  # a row for each node
        given = [np.resize(offset[i:], (len(y), 2 + int(np.max(zoo.NODES) > 1))) for i, y in enumerate(subject.data[1])]
    beside = replace(subject, beside={"offset": given})
    model = beside.fit()
    slope = np.abs(beside.slope(model)).max()
    assert slope <= 1e-3 * abs(beside.value(model)), f"a slope of {slope:.1e} is left"


def _errors(name: str, method: str) -> None:
    model = plain(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = {"draws": 10, "random_state": 0} if method == "bootstrap" else {}
        found = model.standard_errors(method=method, **more)
    numbers = np.array(list(_flat(found)), dtype=np.float64)
    assert len(numbers)
    assert np.isfinite(numbers).all(), "errors that are no numbers"
    assert numbers.min() >= 0.0


def _flat(value: Any) -> Iterator[float]:
    """All numbers in nested dicts, lists and arrays."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _flat(part)
    else:
        yield from np.ravel(value).tolist()


def _asked(name: str, question: str) -> None:
    model, (X, *rest) = plain(name), SUBJECTS[name].data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if question == "log_likelihood":
            assert np.isfinite(model.log_likelihood(X, *rest)).all()
        elif question == "predict_kbest":
            asked = SUBJECTS[name].partial[0] if name == "BayesianNetwork" else X
            best = model.predict_kbest(asked, 2)
            assert len(best) == len(X)
            for found in best:
                assert all(a[1] >= b[1] for a, b in itertools.pairwise(found)), "not the best first"
        elif question == "sample":
            unconditional = name in ("MarkovNetwork", "BayesianNetwork")
            first = {"BoltzmannChain": ([3, 2],)}.get(name, () if unconditional else (X,))
            model.sample(*first, **({} if name == "BoltzmannChain" else {"size": 2}), random_state=0)
        elif question == "explain":
            assert str(model.explain(X[:1] if name == "BayesianNetwork" else X[0]))
        else:
            asked = SUBJECTS[name].partial if name == "BayesianNetwork" else (X,)
            assert asked is not None
            assert len(getattr(model, question)(asked[0]))


def _kept(name: str, how: str) -> None:
    model, data = plain(name), SUBJECTS[name].data
    if how == "pickle":
        other = pickle.loads(pickle.dumps(model))
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            model.save(path)
            other = pt.load(path)
    assert np.array_equal(model.log_likelihood(*data), other.log_likelihood(*data)), "another answer"


def _streamed(name: str, how: str) -> None:
    subject = SUBJECTS[name]
    model = subject.make(**subject.options)
    half = len(subject.data[0]) // 2
    pieces = [tuple(part[:half] for part in subject.data), tuple(part[half:] for part in subject.data)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {"classes": np.unique(zoo.Y)} if name in ("SoftmaxRegression", "LatentSoftmax") else {}
        if how == "partial_fit":
            for piece in pieces:
                model.partial_fit(*piece, **given)
        else:
            model.fit_stream(pieces * 5, **given)
    worst = subject.value(subject.moved(model, np.zeros(len(subject.weights(model)))))
    share = (worst - subject.value(model)) / (worst - subject.value(plain(name)))
    assert share > 0.7, f"{share:.2f} of what the optimum gains"


#: Every row: its group, its name, and the attempt.
ROWS: dict[tuple[str, str], Callable[[str], None]] = {
    **{("solver", key): lambda name, key=key: _solver(name, key) for key in SOLVERS},
    **{("penalty", key): lambda name, key=key: _penalty(name, key) for key in ("l2", "l1 and l2", "l1 alone")},
    **{("constraints", key): lambda name, key=key: _constrained(name, key) for key in SETS},
    **{("l1 and", key): lambda name, key=key: _constrained(name, key, L1) for key in ("box", "linear")},
    **{("likelihood", key): lambda name, key=key: _likelihood(name, key) for key in LIKELIHOODS},
    **{("labels", key): lambda name, key=key: _labels(name, key) for key in ("full", "partial", "sets")},
    **{("data", key): lambda name, key=key: _offset(name, key) for key in ("prior", "offset")},
    **{("weights", key): lambda name, key=key: _weighted(name, key) for key in ("sample", "class")},
    **{("uncertainty", key): lambda name, key=key: _errors(name, key) for key in ("information", "sandwich", "bootstrap")},
    **{
        ("prediction", key): lambda name, key=key: _asked(name, key)
        for key in ("predict", "predict_marginals", "predict_kbest", "sample", "log_likelihood", "explain")
    },
    **{("persistence", key): lambda name, key=key: _kept(name, key) for key in ("save", "pickle")},
    **{("streaming", key): lambda name, key=key: _streamed(name, key) for key in ("partial_fit", "fit_stream")},
}


#: Where there is nothing to ask for, and why. A star stands for all estimators, or all rows of a group.
POSITIONS = (
    "a class of positions has no weight in the likelihood of an example: log p(y | x) does not fall apart into positions. "
    "Weigh examples by sample_weight."
)
STRUCTURES = (
    "outputs are whole configurations: there are no classes that could have weights. Weigh examples by sample_weight."
)
ONE_VARIABLE = "There is one label, with no neighbours to condition on: its pseudo-likelihood is the likelihood."
COMPOSITES = ("pseudo", "orders 1 and 2", "pseudo, refined")
REASONS: dict[tuple[str, str], str] = {
    **{
        (name, "likelihood: bethe"): "Sums over classes, chains and trees are exact: Bethe's free energy is log Z itself."
        for name in (
            *("SoftmaxRegression", "LatentSoftmax", "ChainCRF", "HiddenChainCRF", "LatentDynamicCRF", "BoltzmannChain"),
            "DependencyCRF",
        )
    },
    (
        "OracleCRF",
        "likelihood: full",
    ): "Only best configurations are known: log Z is replaced by a bound, that of `entropy`.",
    ("OracleCRF", "likelihood: bethe"): "It is called entropy='bethe', with groups of parts.",
    ("BayesianNetwork", "likelihood: bethe"): "Tables are normalised: log Z is zero.",
    **{
        (name, f"likelihood: {kind}"): ONE_VARIABLE
        for name in ("SoftmaxRegression", "LatentSoftmax", "HiddenChainCRF")
        for kind in COMPOSITES
    },
    **{
        ("MatchingCRF", f"likelihood: {kind}"): (
            "Given all other edges, an edge is certain where all vertices are matched: conditionals say nothing."
        )
        for kind in COMPOSITES
    },
    **{
        (
            "OracleCRF",
            f"likelihood: {kind}",
        ): "Only best configurations are known: conditionals of parts need sums over others."
        for kind in COMPOSITES
    },
    **{
        ("BayesianNetwork", f"likelihood: {kind}"): "The likelihood falls apart into tables, which are conditionals already."
        for kind in COMPOSITES
    },
    **{
        (name, "solver: block_frank_wolfe"): "With something hidden the objective is not convex: no dual bounds it."
        for name in ("LatentSoftmax", "HiddenChainCRF", "LatentDynamicCRF")
    },
    ("BayesianNetwork", "solver: *"): (
        "The optimum is a quotient of counts, and with hidden variables every M-step is one: EM finds it, and there is "
        "no gradient to descend."
    ),
    **{(name, "weights: class"): POSITIONS for name in ("ChainCRF", "LatentDynamicCRF", "BoltzmannChain", "GraphCRF")},
    **{
        (name, "weights: class"): STRUCTURES
        for name in ("MarkovNetwork", "MatchingCRF", "DependencyCRF", "OracleCRF", "BayesianNetwork")
    },
    ("OracleCRF", "prediction: sample"): (
        "only best configurations are known: exact draws need log Z or marginals of what is left once parts are drawn."
    ),
    **{
        ("OracleCRF", f"labels: {kind}"): (
            "log Z_H bounds log Z from above, so that the difference of two of them, which is what a part of a "
            "configuration would need, bounds nothing."
        )
        for kind in ("partial", "sets")
    },
    **{
        (
            "BayesianNetwork",
            f"penalty: {key}",
        ): "Probabilities of a table sum to one: the l1 of their logarithms has no meaning."
        for key in ("l1 and l2", "l1 alone")
    },
    **{
        (
            "BayesianNetwork",
            f"{group}: *",
        ): "A table has its own constraint, that it sums to one; others are no logarithms' sets."
        for group in ("constraints", "l1 and")
    },
    (
        "OracleCRF",
        "penalty: l1 alone",
    ): "The dual divides by l2: with l1 alone it is no quadratic, and its parameters may be infinite.",
}


def reason(name: str, row: tuple[str, str]) -> str:
    """Why a cell cannot be, where the library has no place to say so; empty if there is no reason."""
    group, key = row
    for who in (name, "*"):
        for what in (f"{group}: {key}", f"{group}: *"):
            if (who, what) in REASONS:
                return REASONS[who, what]
    return ""


def cells(name: str) -> dict[tuple[str, str], Cell]:
    """All cells of an estimator."""
    out = {}
    for row, run in ROWS.items():
        found = tried(lambda run=run: run(name))  # type: ignore[misc]
        why = reason(name, row)
        out[row] = Cell("refused", why) if found.state in ("missing", "refused") and why else found
    return out


def page(table: dict[str, dict[tuple[str, str], Cell]]) -> str:
    """The matrix as a page."""
    states = [cell.state for column in table.values() for cell in column.values()]
    numbers: dict[str, int] = {}
    lines = [
        "# What works with what",
        "",
        "Written by `python tests/conformance/matrix.py`; `tests/conformance/test_matrix.py` runs every cell again.",
        "A tick is a fit that reached its optimum (other solvers: the value of the plain one; other objectives: no feasible",
        "step promises less, by finite differences of `log_likelihood`), or a question that was answered. A number is the",
        "sentence, below, with which it is refused.",
        "",
        f"{states.count('works')} of {len(states)} work, {states.count('refused')} are refused"
        + (f", {states.count('missing')} are missing." if "missing" in states else "."),
        "",
        "| | " + " | ".join(SHORT.get(name, name) for name in table) + " |",
        "| --- |" + " :-: |" * len(table),
    ]
    group = ""
    for row in ROWS:
        if row[0] != group:
            group = row[0]
            lines.append(f"| **{group}** |" + " |" * len(table))
        entries = []
        for column in table.values():
            cell = column[row]
            if cell.state == "works":
                entries.append("✓")
            elif cell.state == "refused":
                entries.append(str(numbers.setdefault(cell.sentence, len(numbers) + 1)))
            else:
                entries.append("–")
        lines.append(f"| {row[1]} | " + " | ".join(entries) + " |")
    lines += ["", "## Why not", ""]
    lines += [f"{number}. {sentence}" for sentence, number in numbers.items()]
    return "\n".join(lines) + "\n"


SHORT = {
    "SoftmaxRegression": "Softmax",
    "LatentSoftmax": "Latent&#8203;Softmax",
    "HiddenChainCRF": "Hidden&#8203;Chain",
    "LatentDynamicCRF": "Latent&#8203;Dynamic",
    "BoltzmannChain": "Boltzmann&#8203;Chain",
    "MarkovNetwork": "Markov&#8203;Network",
    "DependencyCRF": "Dependency&#8203;CRF",
    "BayesianNetwork": "Bayesian&#8203;Network",
}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "matrix.md"

if __name__ == "__main__":
    TABLE = {name: cells(name) for name in SUBJECTS}
    PAGE.write_text(page(TABLE))
    for name, column in TABLE.items():
        for row, cell in column.items():
            if cell.state in ("wrong", "missing"):
                print(name, ": ".join(row), cell.state, cell.sentence[:200])
