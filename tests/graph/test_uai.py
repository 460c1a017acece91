"""UAI files: models, evidence, answers; what is malformed is refused by file and line."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys

import numpy as np
import pytest

from partita import io
from partita.graph import uai
from partita.structures import FactorGraph

MODEL = """MARKOV
3
2 2 3
3
1 0
2 0 1
2 1 2

2
 0.436 0.564

4
 0.128 0.872
 0.920 0.080

6
 0.210 0.333 0.457
 0.811 0.000 0.189
"""


def write(path, text):
    path.write_text(text)
    return path


@pytest.fixture
def model(tmp_path):
    return write(tmp_path / "m.uai", MODEL)


def test_a_model(model, tmp_path):
    graph, potentials = io.read_uai(model)
    assert graph.cardinalities.tolist() == [2, 2, 3]
    assert graph.factors == ((0,), (0, 1), (1, 2))
    assert potentials[10] == -np.inf
    np.testing.assert_allclose(np.exp(graph.tables(potentials)[1]), [[0.128, 0.872], [0.92, 0.08]], rtol=1e-15)
    assert graph.log_partition(potentials)[0] == pytest.approx(0.0, abs=1e-12)
    packed = tmp_path / "packed"  # found by its bytes
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + MODEL.replace("\n", "\r\n").encode()))
    again, values = io.read_uai(packed)
    assert again.factors == graph.factors
    np.testing.assert_array_equal(values, potentials)


@pytest.mark.parametrize("name", ["m.uai", "m.uai.gz"])
def test_round_trip(name, tmp_path, rng):
    graph = FactorGraph([2, 1, 4, 3], [(2, 0), (), (3,), (0, 1, 3), (2, 0)])
    potentials = 20.0 * rng.standard_normal(graph.size)
    potentials[[0, 7]] = -np.inf
    io.write_uai(tmp_path / name, graph, potentials)
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith("gz")
    again, values = io.read_uai(tmp_path / name)
    assert (again.factors, again.cardinalities.tolist()) == (graph.factors, graph.cardinalities.tolist())
    np.testing.assert_allclose(values, potentials, rtol=1e-15, atol=2e-16)
    text = io.text.read_text(tmp_path / name)
    io.write_uai(tmp_path / "second", graph, graph.tables(potentials))
    assert (tmp_path / "second").read_text() == text
    assert repr(float(np.exp(potentials[3]))) in text  # all digits


def test_what_a_file_cannot_hold_is_refused_and_nothing_is_left(tmp_path):
    graph = FactorGraph([2, 2], [(0,), (0, 1)])
    good = np.log([0.5, 0.5, 0.1, 0.9, 0.3, 0.7])
    io.write_uai(tmp_path / "bayes", graph, good, kind="BAYES")
    assert (tmp_path / "bayes").read_text().startswith("BAYES\n2\n2 2\n2\n1 0\n2 0 1\n")
    for place, value in ((3, 800.0), (4, -800.0)):
        bad = good.copy()
        bad[place] = value
        with pytest.raises(ValueError, match=f"{value}.* in factor 1"):
            io.write_uai(tmp_path / "x", graph, bad)
    with pytest.raises(ValueError, match=r"rows that sum to one, unlike those of factor 1"):
        io.write_uai(tmp_path / "x", graph, np.zeros(6) - np.log([2, 2, 1, 1, 1, 1]), kind="BAYES")
    with pytest.raises(ValueError, match="exactly one factor for every variable"):
        io.write_uai(tmp_path / "x", FactorGraph([2, 2], [(0,), (1, 0)]), good, kind="BAYES")
    with pytest.raises(ValueError, match=r"kind must be one of 'MARKOV', 'BAYES'; got 'markov'"):
        io.write_uai(tmp_path / "x", graph, good, kind="markov")
    with pytest.raises(ValueError, match="one set of tables, got 2"):
        io.write_uai(tmp_path / "x", graph, np.stack([good, good]))
    assert [path.name for path in tmp_path.iterdir()] == ["bayes"]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (MODEL, "", 1, "the file ends where MARKOV or BAYES should be"),
        ("MARKOV", "Markov", 1, "a model must begin with MARKOV or BAYES, got 'Markov'"),
        ("MARKOV\n3", "MARKOV\nthree", 2, "the number of variables must be an integer, got 'three'"),
        ("MARKOV\n3", "MARKOV\n3.0", 2, "the number of variables must be an integer, got '3.0'"),
        ("MARKOV\n3", "MARKOV\n0", 2, "the number of variables must be at least 1, got 0"),
        ("MARKOV\n3", "MARKOV\n" + "9" * 30, 2, "the number of variables must be at least 1, got 999"),
        ("2 2 3\n", "2 0 3\n", 3, "the number of states of variable 1 must be at least 1, got 0"),
        ("2 2 3\n", "2 --2 3\n", 3, "the number of states of variable 1 must be an integer, got '--2'"),
        ("3\n1 0", "-1\n1 0", 4, "the number of factors must be at least 0, got -1"),
        ("1 0\n", "4 0\n", 5, "the number of variables of factor 0 must be from 0 to 3, got 4"),
        ("2 0 1\n", "2 0 3\n", 6, "a variable of factor 1 must be from 0 to 2, got 3"),
        ("2 0 1\n", "2 1 1\n", 6, "factor 1 must have different variables, got 1 1"),
        ("\n4\n", "\n5\n", 12, "factor 1 must have 4 entries, got 5"),
        ("0.920", "x", 14, "the entries of factor 1 must be finite numbers that are not negative, got 'x'"),
        ("0.920", "-0.92", 14, "the entries of factor 1 must be finite numbers that are not negative, got '-0.92'"),
        ("0.920", "nan", 14, "got 'nan'"),
        ("0.920", "inf", 14, "got 'inf'"),
        ("0.920", "1_0", 14, "got '1_0'"),
        ("0.811 0.000 0.189\n", "0.811\n", 18, "the file ends where the entries of factor 2 should be: 4 of 6 numbers"),
        ("0.189\n", "0.189\n\n7\n", 20, "the file should end here, got '7'"),
        ("0.920", "0.92\0", 14, "a NUL byte; this is not a text file"),
    ],
)
def test_malformed_models(old, new, line, message, tmp_path):
    path = write(tmp_path / "bad.uai", MODEL.replace(old, new, 1))
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        io.read_uai(path)
    assert str(error.value).startswith(f"{path}, line {line}: ")
    assert message in str(error.value)


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "bad.uai"
    path.write_bytes(b"MARKOV\n\xff\n")
    with pytest.raises(ValueError, match=r"bad.uai, line 2: not UTF-8"):
        io.read_uai(path)
    path.write_bytes(gzip.compress(MODEL.encode())[:-9])
    with pytest.raises(ValueError, match=r"bad.uai: the gzip data are damaged or cut off"):
        io.read_uai(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", {}),
        ("0\n", {}),
        ("2 0 1 2 2\n", {0: 1, 2: 2}),
        ("2\n0 1\n2 2\n", {0: 1, 2: 2}),  # one variable a line
        ("1\n0\n1\n", {0: 1}),  # one number a line
        ("1\n2 0 1 2 2\n", {0: 1, 2: 2}),  # one sample
        ("1\n\n0\n", {}),  # one sample without evidence
        ("1\n1 0 1\n", {0: 1}),
        ("2 0 1 0 1", {0: 1}),  # twice the same
    ],
)
def test_evidence(text, expected, tmp_path):
    assert io.read_evidence(write(tmp_path / "e", text), [2, 2, 3]) == expected
    assert io.read_evidence(write(tmp_path / "e", text)) == expected
    io.write_evidence(tmp_path / "w.gz", expected)
    assert io.read_evidence(tmp_path / "w.gz", [2, 2, 3]) == expected


def test_several_samples_of_evidence(tmp_path):
    path = write(tmp_path / "e", "3\n1 0 1\n0\n2 1 1 2 0\n")
    assert [io.read_evidence(path, [2, 2, 3], sample=k) for k in range(3)] == [{0: 1}, {}, {1: 1, 2: 0}]
    with pytest.raises(ValueError, match="has 3 samples of evidence: choose one"):
        io.read_evidence(path)
    with pytest.raises(ValueError, match="sample must be from 0 to 2"):
        io.read_evidence(path, sample=3)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the file ends where the number of observed variables should be"),
        ("2 0 1\n", 1, "the file ends where an observed variable should be"),
        ("2 0 1\n1", 2, "the file ends where the state of variable 1 should be"),
        ("1 3 0\n", 1, "an observed variable must be from 0 to 2, got 3"),
        ("1 2 3\n", 1, "the state of variable 2 must be from 0 to 2, got 3"),
        ("1\n1 2 3\n", 2, "the state of variable 2 must be from 0 to 2, got 3"),
        ("2 0 1 0 0\n", 1, "variable 0 is observed in state 1 and in state 0"),
        ("1 0 1 1\n", 1, "the file should end here, got '1'"),
        ("1 0 yes\n", 1, "the state of variable 0 must be an integer, got 'yes'"),
    ],
)
def test_malformed_evidence(text, line, message, tmp_path):
    path = write(tmp_path / "bad.evid", text)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        io.read_evidence(path, [2, 2, 3])
    assert str(error.value) == f"{path}, line {line}: {message}"


def test_evidence_conditions_the_model(model, tmp_path):
    graph, potentials = io.read_uai(model)
    for evidence in ({1: 1}, write(tmp_path / "e", "1 1 1")):
        given, rest = io.read_uai(model, evidence)
        assert given.cardinalities.tolist() == [2, 1, 3]
        p = graph.variable_marginals(graph.infer(potentials).marginals)[1][1]
        assert given.log_partition(rest)[0] == pytest.approx(np.log(p), rel=1e-12)
    assert io.read_uai(model, {})[0].cardinalities.tolist() == [2, 2, 3]


def test_answers(tmp_path, rng):
    marginals = [rng.dirichlet(np.ones(k)) for k in (2, 1, 5)]
    io.write_marginals(tmp_path / "MAR", marginals)
    assert (tmp_path / "MAR").read_text().startswith("MAR\n3 2 0.")
    for ours, theirs in zip(io.read_marginals(tmp_path / "MAR"), marginals, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    io.write_states(tmp_path / "MAP", np.array([1, 0, 4]))
    assert (tmp_path / "MAP").read_text() == "MAP\n3 1 0 4\n"
    assert io.read_states(tmp_path / "MAP").tolist() == [1, 0, 4]
    io.write_partition(tmp_path / "PR", -39.64014001408536)
    assert (tmp_path / "PR").read_text() == "PR\n-17.21549406998956\n"
    assert io.read_partition(tmp_path / "PR") == pytest.approx(-39.64014001408536, rel=1e-15)
    assert io.read_partition(write(tmp_path / "PR", "PR\n-inf")) == -np.inf


def test_answers_with_a_number_of_samples(tmp_path):
    assert io.read_partition(write(tmp_path / "a", "PR\n1\n-2.0\n")) == pytest.approx(-2.0 * np.log(10.0))
    assert io.read_partition(write(tmp_path / "a", "PR\n1\n")) == pytest.approx(np.log(10.0))
    assert io.read_states(write(tmp_path / "a", "MPE\n1\n3 1 0 4\n")).tolist() == [1, 0, 4]
    assert io.read_states(write(tmp_path / "a", "MAP\n1\n1 0\n")).tolist() == [0]
    assert io.read_states(write(tmp_path / "a", "MAP\n1\n0\n")).tolist() == [0]
    assert len(io.read_marginals(write(tmp_path / "a", "MAR\n1\n2 2 0.5 0.5 1 1.0\n"))) == 2
    assert len(io.read_marginals(write(tmp_path / "a", "MAR\n1\n2 0.5 0.5\n"))) == 1


@pytest.mark.parametrize(
    ("read", "text", "line", "message"),
    [
        ("read_partition", "MAR\n1\n", 1, "the answer must begin with PR, got 'MAR'"),
        ("read_partition", "PR\n", 1, "the file ends where log10 of the partition function should be"),
        ("read_partition", "PR\nnan\n", 2, "log10 of the partition function must be a number, got 'nan'"),
        ("read_partition", "PR\n3 4\n", 2, "the file should end here, got '4'"),
        ("read_marginals", "MAR\n2 2 0.5 0.5\n", 2, "the file ends where the number of states of variable 1 should be"),
        ("read_marginals", "MAR\n1 2 0.5 -0.5\n", 2, "the probabilities of variable 0 must be finite numbers"),
        ("read_states", "PR\n2\n", 1, "the answer must begin with MAP or MPE, got 'PR'"),
        ("read_states", "MAP\n2 0 x\n", 2, "the state of variable 1 must be an integer, got 'x'"),
        ("read_states", "MAP\n2 0\n", 2, "the file ends where the state of variable 1 should be"),
    ],
)
def test_malformed_answers(read, text, line, message, tmp_path):
    path = write(tmp_path / "bad", text)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        getattr(io, read)(path)
    assert str(error.value).startswith(f"{path}, line {line}: {message}")


def test_names_resolve_and_the_import_is_light():
    assert all(getattr(io, name) is not None for name in io.__all__)
    assert set(io.__all__) <= set(dir(io))
    assert io.read_uai is uai.read_uai
    with pytest.raises(AttributeError, match="no attribute 'read_nothing'"):
        io.read_nothing  # noqa: B018
    code = "import sys, partita.io; sys.exit(int('partita.structures' in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.data
@pytest.mark.parametrize("name", ["Segmentation_11", "Pedigree_11", "Promedus_24", "DBN_11", "Grids_12"])
def test_published_partition_functions(name, data_dir, tmp_path):
    folder = data_dir / "uai2014_pr"
    with open(folder / "logz.csv") as file:
        exact = {row["instance"]: float(row["lnZ_exact"]) for row in csv.DictReader(file)}
    path, evidence = folder / f"{name}.uai", folder / f"{name}.uai.evid"
    graph, potentials = io.read_uai(path, evidence)
    result = graph.infer(potentials)
    assert result.log_z[0] == pytest.approx(exact[name], rel=1e-11)
    assert io.read_partition(f"{path}.PR") == pytest.approx(exact[name], rel=1e-5)
    known = io.read_evidence(evidence)
    published = io.read_marginals(f"{path}.MAR")
    for v, p in enumerate(graph.variable_marginals(result.marginals)):
        if v in known:
            p = np.eye(len(published[v]))[known[v]]
        np.testing.assert_allclose(p, published[v], atol=2e-6)
    whole, tables = io.read_uai(path)
    io.write_uai(tmp_path / "again.uai", whole, tables)
    again, values = io.read_uai(tmp_path / "again.uai")
    assert again.factors == whole.factors
    np.testing.assert_allclose(values, tables, rtol=1e-15, atol=2e-16)
