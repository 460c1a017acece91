"""`partita infer`: answers in the format of the UAI competitions."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from partita import io
from partita.cli import infer as cli_infer
from partita.cli.commands import main
from partita.graph.engines import loopy_belief_propagation as belief_propagation
from partita.graph.structure import factor_graph
from partita.structures import FactorGraph

BIF = """network n { }
variable rain { type discrete [ 2 ] { yes, no }; }
variable grass { type discrete [ 3 ] { dry, damp, wet }; }
probability ( rain ) { table 0.2, 0.8; }
probability ( grass | rain ) {
  (yes) 0.1, 0.3, 0.6;
  (no) 0.7, 0.2, 0.1;
}
"""


def run(capsysbinary, *argv):
    capsysbinary.readouterr()
    status = main(["infer", *map(str, argv)])
    out, err = capsysbinary.readouterr()
    return status, out.decode(), err.decode()


def fails(capsysbinary, *argv):
    """The one line that a failing command says."""
    status, out, err = run(capsysbinary, *argv)
    assert (status, out) == (2, "")
    assert err.startswith("partita: error: ")
    assert err.count("\n") == 1
    return err.removeprefix("partita: error: ").rstrip()


@pytest.fixture
def model(tmp_path, rng):
    """A model of four variables and its files; the last variable is in no factor."""
    graph = FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 0)])
    potentials = rng.standard_normal(graph.size)
    io.write_uai(tmp_path / "m.uai", graph, potentials)
    (tmp_path / "m.evid").write_text("1 1 2\n")
    (tmp_path / "n.bif").write_text(BIF)
    (tmp_path / "n.bif.gz").write_bytes(gzip.compress(BIF.encode()))
    return tmp_path


def joint(model):
    """Probabilities of all configurations, not normalised."""
    graph, potentials = io.read_uai(model / "m.uai")
    states = np.array(list(np.ndindex(*graph.cardinalities)))
    return states, np.exp(graph.score(potentials, states))


def test_partition_function(model, capsysbinary):
    _, p = joint(model)
    status, out, err = run(capsysbinary, model / "m.uai")
    kind, value = out.splitlines()
    assert (status, kind) == (0, "PR")
    assert float(value) == pytest.approx(np.log10(p.sum()), rel=1e-12)
    assert value == repr(float(value))
    assert err.startswith("engine exact, width 2, ")
    assert err.endswith(" seconds; exact: the answer was computed in closed form\n")
    assert run(capsysbinary, model / "m.uai", "--quiet", "--engine", "exact") == (0, out, "")


def test_marginals_of_all_variables(model, capsysbinary):
    states, p = joint(model)
    p[states[:, 1] != 2] = 0.0
    for options in (["--evid", model / "m.evid"], ["--observe", "1=2"], ["--evid", model / "m.evid", "--observe", "1=2"]):
        status, out, err = run(capsysbinary, model / "m.uai", "--task", "MAR", "-q", *options, "-o", model / "m.MAR")
        assert (status, out, err) == (0, "", "")
        found = io.read_marginals(model / "m.MAR")
        assert found[1].tolist() == [0.0, 0.0, 1.0]
        for v, q in enumerate(found):
            np.testing.assert_allclose(q, np.bincount(states[:, v], weights=p) / p.sum(), atol=1e-12)


def test_best_configuration(model, capsysbinary):
    states, p = joint(model)
    for options, allowed in (([], p), (["--evid", model / "m.evid"], np.where(states[:, 1] == 2, p, 0.0))):
        status, out, _ = run(capsysbinary, model / "m.uai", "--task", "MAP", *options)
        kind, line = out.splitlines()
        n, *best = map(int, line.split())
        assert (status, kind, n) == (0, "MAP", 4)
        assert p[np.all(states == best, axis=1)][0] == pytest.approx(allowed.max(), rel=1e-12)
        if options:
            assert best[1] == 2


def test_everything_as_json(model, capsysbinary):
    states, p = joint(model)
    status, out, _ = run(capsysbinary, model / "m.uai", "--json", "--evid", model / "m.evid", "--task", "MAP")
    found = json.loads(out)
    total = p[states[:, 1] == 2].sum()
    assert status == 0
    assert found["log_z"] == found["lower"] == found["upper"] == pytest.approx(np.log(total), rel=1e-12)
    assert found["log10_z"] == pytest.approx(np.log10(total), rel=1e-12)
    assert (found["exact"], found["engine"], found["width"]) == (True, "exact", 1)
    assert found["status"].startswith("exact: ")
    assert found["memory"] > 0.0
    assert set(found["seconds"]) == {"starting", "reading", "inference"}
    assert found["evidence"] == {"1": 2}
    assert found["marginals"][1] == [0.0, 0.0, 1.0]
    assert found["states"][1] == 2
    assert found["score"] == pytest.approx(np.log(p[states[:, 1] == 2].max()), rel=1e-12)
    assert "states" not in json.loads(run(capsysbinary, model / "m.uai", "--json")[1])


@pytest.mark.parametrize("observed", [["grass=wet"], ["1=2"], ["grass=2"], ["grass=wet, 1=2"], ["1=wet", "grass=2"]])
def test_networks_by_name(observed, model, capsysbinary):
    options = [part for text in observed for part in ("--observe", text)]
    status, out, _ = run(capsysbinary, model / "n.bif.gz", *options)
    assert status == 0
    assert float(out.split()[1]) == pytest.approx(np.log10(0.2), rel=1e-12)
    found = json.loads(run(capsysbinary, model / "n.bif", *options, "--json")[1])
    assert found["variables"] == ["rain", "grass"]
    assert found["state_names"] == [["yes", "no"], ["dry", "damp", "wet"]]
    assert found["marginals"][0] == pytest.approx([0.6, 0.4], rel=1e-12)


def test_mistakes_are_one_line(model, capsysbinary):
    uai, bif = model / "m.uai", model / "n.bif"
    (model / "bad.uai").write_text("MARKOV\n1\n2\n1\n1 0\n2\n1.0 x\n")
    (model / "bad.evid").write_text("1 1 3\n")
    zero = FactorGraph([2], [(0,)])
    io.write_uai(model / "zero.uai", zero, np.full(2, -np.inf))
    for arguments, message in (
        ([model / "none.uai"], f"{model / 'none.uai'}: No such file or directory"),
        ([model / "bad.uai"], f"{model / 'bad.uai'}, line 7: the entries of factor 0 must be finite"),
        ([bif.rename(model / "x.uai")], f"{model / 'x.uai'}, line 1: a model must begin with MARKOV or BAYES"),
        ([uai, "--evid", model / "bad.evid"], f"{model / 'bad.evid'}, line 1: the state of variable 1 must be from 0 to 2"),
        ([uai, "--observe", "1"], "--observe 1: it must be variable=state, got '1'"),
        ([uai, "--observe", "4=0"], "--observe 4=0: a variable must be a number below 4, got '4'"),
        ([uai, "--observe", "1=x"], "--observe 1=x: the state of variable 1 must be a number below 3, got 'x'"),
        ([uai, "--observe", "1=0,1=1"], "--observe 1=0,1=1: variable 1 is observed in two states"),
        ([model / "n.bif.gz", "--observe", "sun=yes"], "--observe sun=yes: the network has no variable 'sun'"),
        ([uai, "--memory-limit", "much"], "--memory-limit much: it must be a positive number of bytes"),
        ([uai, "--memory-limit", "0"], "--memory-limit 0: it must be a positive number of bytes"),
        ([uai, "--engine", "trw", "--task", "MAP"], "--task MAP takes --engine auto, exact, bp, max_flow, planar; got trw"),
        ([uai, "--engine", "exact", "--memory-limit", "8"], "exact sums need a table of"),
        ([uai, "-o", model / "no" / "folder"], f"{model / 'no' / 'folder'} cannot be written"),
        ([model / "zero.uai"], "potentials forbid every configuration"),
    ):
        assert fails(capsysbinary, *arguments).startswith(message)
    (model / "old").write_text("old")
    fails(capsysbinary, model / "bad.uai", "-o", model / "old")
    assert (model / "old").read_text() == "old"


def test_exact_may_take_longer_than_auto_would(tmp_path, capsysbinary, monkeypatch):
    """Auto leaves large tables alone, even where memory would do; who asks for exact sums gets them."""
    graph = FactorGraph.grid(6, 6)
    io.write_uai(tmp_path / "grid.uai", graph, np.zeros(graph.size))
    monkeypatch.setattr(factor_graph, "AUTO_ENTRIES", 2.0**4)
    assert run(capsysbinary, tmp_path / "grid.uai")[2].startswith("engine trw, ")
    status, out, err = run(capsysbinary, tmp_path / "grid.uai", "--engine", "exact")
    assert status == 0
    assert float(out.split()[1]) == pytest.approx(36 * np.log10(2.0), rel=1e-12)
    assert err.startswith("engine exact, width ")


def test_best_configuration_by_max_product(model, capsysbinary, tmp_path):
    """Without cycles it is the best; with --memory-limit too small, auto turns to it."""
    graph = FactorGraph([2, 3, 2], [(0, 1), (1, 2)])
    io.write_uai(tmp_path / "tree.uai", graph, np.random.default_rng(0).standard_normal(graph.size))
    exact = run(capsysbinary, tmp_path / "tree.uai", "--task", "MAP")[1]
    for options in (["--engine", "bp"], ["--memory-limit", "8"]):
        status, out, err = run(capsysbinary, tmp_path / "tree.uai", "--task", "MAP", *options)
        assert (status, out) == (0, exact)
        assert err.startswith("engine bp, ")
        assert err.endswith(
            "max-product: the best configuration that was found, and the best of all if there are no cycles\n"
        )
    states, p = joint(model)
    found = json.loads(run(capsysbinary, model / "m.uai", "--task", "MAP", "--engine", "bp", "--json")[1])
    assert found["score"] == pytest.approx(np.log(p[np.all(states == found["states"], axis=1)][0]), rel=1e-12)
    assert (found["engine"], found["exact"]) == ("bp", False)


def test_an_engine_that_has_not_converged_says_so_once(tmp_path, capsysbinary, monkeypatch):
    graph = FactorGraph.grid(4, 4)
    io.write_uai(tmp_path / "grid.uai", graph, np.random.default_rng(0).standard_normal(graph.size))
    monkeypatch.setattr(
        belief_propagation.bethe, "__kwdefaults__", belief_propagation.bethe.__kwdefaults__ | {"max_iter": 1}
    )
    _, _, err = run(capsysbinary, tmp_path / "grid.uai", "--engine", "bp")
    assert err.count("\n") == 1
    assert "seconds; engine bp has not converged: " in err
    _, out, err = run(capsysbinary, tmp_path / "grid.uai", "--engine", "bp", "--quiet", "--json")
    assert err.startswith("partita: warning: engine bp has not converged: ")
    assert json.loads(out)["status"].startswith("not converged: ")


def test_the_engines_are_those_of_factor_graphs():
    assert sorted(cli_infer.ENGINES) == sorted(factor_graph.ENGINES)
    assert cli_infer.DECODERS == factor_graph.DECODERS


@pytest.mark.parametrize(
    ("text", "count"),
    [("500", 500.0), ("4G", 4e9), ("1.5M", 1.5e6), ("2kb", 2e3), ("12e9", 12e9), ("1 ", 1.0), ("3GiB", 3.0 * 2**30)],
)
def test_sizes(text, count):
    assert cli_infer._bytes(text) == count


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom partita.cli.commands import main\n"
        "try:\n    main(['infer', '--help'])\nexcept SystemExit:\n    pass\n"
        "assert not {'numpy', 'numba', 'scipy', 'sklearn'} & set(sys.modules)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"--memory-limit" in done.stdout


@pytest.mark.data
def test_a_pedigree(data_dir, capsysbinary):
    model = data_dir / "uai2014_pr" / "Pedigree_11.uai"
    status, out, err = run(capsysbinary, model, "--evid", f"{model}.evid")
    assert status == 0
    assert float(out.split()[1]) == pytest.approx(-17.21549406998956, rel=1e-12)
    assert err.startswith("engine exact, width ")


@pytest.fixture
def grid(tmp_path, monkeypatch):
    """A file of a grid that is too large for auto's exact sums, and its log10 Z."""
    graph = FactorGraph.grid(6, 6)
    potentials = 1.5 * np.random.default_rng(0).standard_normal(graph.size)
    io.write_uai(tmp_path / "grid.uai", graph, potentials)
    exact = float(graph.log_partition(potentials, "exact")[0]) / np.log(10.0)
    monkeypatch.setattr(factor_graph, "AUTO_ENTRIES", 2.0**4)
    return tmp_path / "grid.uai", exact


def test_a_large_graph_gets_an_estimate_and_its_bounds(grid, capsysbinary):
    """It was the tree-reweighted upper bound, without a word."""
    path, exact = grid
    _, out, err = run(capsysbinary, path)
    bound = float(run(capsysbinary, path, "--engine", "trw")[1].split()[1])
    value = float(out.split()[1])
    assert abs(value - exact) < 0.2 * (bound - exact)
    assert err.startswith("engine trw, bp, ")
    assert " is an estimate, the Bethe approximation (whose messages have settled): log10 Z is at least " in err
    assert err.count("\n") == 1
    assert run(capsysbinary, path, "-q")[2].startswith(f"partita: warning: log10 Z = {value:.6g} is an estimate, ")
    found = json.loads(run(capsysbinary, path, "--json")[1])
    assert found["kind"].startswith("an estimate, the Bethe approximation")
    assert found["lower"] <= found["log_z"] <= found["upper"]
    assert found["lower"] / np.log(10.0) <= exact <= found["upper"] / np.log(10.0)
    assert not found["exact"]


@pytest.mark.parametrize(
    ("engine", "kind"), [("trw", "an upper bound, by tree"), ("mean_field", "a lower bound, by mean"), ("bp", "an estimate")]
)
def test_an_engine_says_what_its_number_is(grid, capsysbinary, engine, kind):
    _, out, err = run(capsysbinary, grid[0], "--engine", engine)
    assert f"log10 Z = {float(out.split()[1]):.6g} is {kind}" in err


def test_messages_outside_the_bounds_are_no_estimate(grid, capsysbinary, monkeypatch):
    given = belief_propagation.bethe

    def wrong(*args, **options):
        result = given(*args, **options)
        return dataclasses.replace(result, free_energy=result.upper + 1.0)

    monkeypatch.setattr(belief_propagation, "bethe", wrong)
    _, out, err = run(capsysbinary, grid[0])
    found = json.loads(run(capsysbinary, grid[0], "--json")[1])
    assert float(out.split()[1]) == pytest.approx(0.5 * (found["lower"] + found["upper"]) / np.log(10.0))
    assert "an estimate, the middle between bounds (the Bethe approximation is outside)" in err


def test_nan_is_never_written(grid, capsysbinary):
    message = fails(capsysbinary, grid[0], "--engine", "gibbs")
    assert message == "--engine gibbs does not estimate log Z here: choose auto, bp or trw, or --task MAR"
    _, out, err = run(capsysbinary, grid[0], "--engine", "gibbs", "--json")
    assert "NaN" not in out
    found = json.loads(out)
    assert found["log_z"] is None
    assert found["lower"] < found["upper"]
    assert "; log10 Z is not known; it is at least " in err


def test_the_probability_of_evidence_is_at_most_one(tmp_path, capsysbinary, monkeypatch):
    """Of a BAYES file, by an engine whose own bound is far above."""
    rng = np.random.default_rng(0)
    n = 30
    scopes = [(*sorted(rng.choice(v, min(v, 3), replace=False).tolist()), v) for v in range(n)]
    tables = [rng.dirichlet([0.05, 0.05], (2,) * (len(scope) - 1)) for scope in scopes]
    graph = FactorGraph([2] * n, scopes)
    with np.errstate(divide="ignore"):
        potentials = np.log(np.concatenate([table.ravel() for table in tables]))
    io.write_uai(tmp_path / "net.uai", graph, potentials, kind="BAYES")
    monkeypatch.setattr(factor_graph, "AUTO_ENTRIES", 2.0**4)
    states = graph.sample(potentials, 1, 0)[0]
    given = ",".join(f"{v}={states[v]}" for v in (10, 20, 29))
    exact = float(run(capsysbinary, tmp_path / "net.uai", "--observe", given, "--engine", "exact")[1].split()[1])
    for engine in ("auto", "trw", "bp", "mean_field"):
        found = json.loads(run(capsysbinary, tmp_path / "net.uai", "--observe", given, "--engine", engine, "--json")[1])
        assert exact <= found["upper"] / np.log(10.0) + 1e-9
        assert found["upper"] <= 1e-12
        assert found["log_z"] <= 1e-12
