"""BIF files: networks by name, and what is malformed refused by file and line."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from enumeration import choices

from partita import io
from partita.io import DiscreteNetwork, read_bif, write_bif

ALARM = """// A burglar, an earthquake; and an alarm
network "the alarm" {
  property author = nobody ;
}
variable burglary {
  type discrete [ 2 ] { yes, no };
  property "position = (73; 165)" ;
}
variable alarm { type discrete[3] {"very loud" low off}; }
variable quake {
  type discrete [ 2 ] { yes, no };
}
probability ( alarm | burglary, quake ) { /* the order of rows
                                             is free */
  (no, no) 0.0, 0.01, 0.99;
  (yes, yes) 0.9, 0.05, 0.05;
  property checked = (yes) ;
  default 0.5, 0.25, 0.25;
}
probability ( burglary ) { table 0.1, 0.9; }
probability ( quake ) {
  table 0.02 0.98;
}
"""

BROKEN_ROWS = "(no, no) 0.0, 0.01, 0.99;"


def write(path, text):
    path.write_text(text)
    return path


@pytest.fixture
def network(tmp_path):
    return read_bif(write(tmp_path / "a.bif", ALARM))


def same(a, b):
    names = ("name", "variables", "states", "parents")
    assert [getattr(a, name) for name in names] == [getattr(b, name) for name in names]
    for ours, theirs in zip(a.tables, b.tables, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_network(network):
    assert network.name == "the alarm"
    assert network.variables == ("burglary", "alarm", "quake")
    assert network.states == (("yes", "no"), ("very loud", "low", "off"), ("yes", "no"))
    assert network.parents == ((), ("burglary", "quake"), ())
    assert network.tables[0].tolist() == [0.1, 0.9]
    default = [0.5, 0.25, 0.25]
    assert network.tables[1].tolist() == [[[0.9, 0.05, 0.05], default], [default, [0.0, 0.01, 0.99]]]


def test_the_factor_graph_against_enumeration(network):
    graph, potentials = network.factor_graph()
    assert graph.factors == ((0,), (0, 2, 1), (2,))
    assert graph.log_partition(potentials)[0] == pytest.approx(0.0, abs=1e-12)
    b, a, q = network.tables
    given, index = graph.condition(network.evidence({"alarm": "low"}))
    joint = np.array([[b[i] * q[j] * a[i, j, 1] for j in range(2)] for i in range(2)])
    assert given.log_partition(potentials[index])[0] == pytest.approx(np.log(joint.sum()), rel=1e-12)
    p = given.variable_marginals(given.infer(potentials[index]).marginals)
    np.testing.assert_allclose(p[0], joint.sum(1) / joint.sum(), rtol=1e-12)
    np.testing.assert_allclose(p[2], joint.sum(0) / joint.sum(), rtol=1e-12)


@pytest.mark.parametrize("name", ["b.bif", "b.bif.gz"])
def test_round_trip(network, name, tmp_path, rng):
    write_bif(tmp_path / name, network)
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith("gz")
    same(read_bif(tmp_path / name), network)
    odd = ("table", "a b", "<5", "x-1/2", "//", "ä")
    states = tuple(tuple(odd[: k + 1]) for k in range(3)) + (("1", "0"),) * 3
    shapes = [tuple(len(states[u]) for u in (*range(v), v)) for v in range(6)]
    tables = tuple(rng.dirichlet(np.ones(shape[-1]), shape[:-1]) for shape in shapes)
    other = DiscreteNetwork(odd, states, tuple(odd[:v] for v in range(6)), tables, name="property")
    write_bif(tmp_path / name, other)
    same(read_bif(tmp_path / name), other)
    with pytest.raises(ValueError, match="must not be empty nor hold a quotation mark"):
        write_bif(tmp_path / "x.bif", DiscreteNetwork(('a"b',), (("0",),), ((),), (np.ones(1),)))
    assert not (tmp_path / "x.bif").exists()


def test_after_table_the_child_changes_slowest(tmp_path):
    """As in the dog problem of JavaBayes: p(light-on | family-out) = 0.6, p(light-on | not family-out) = 0.05."""
    text = """network d { }
variable f { type discrete [ 2 ] { t, f }; }
variable l { type discrete [ 2 ] { t, f }; }
probability ( f ) { table 0.15 0.85; }
probability ( l  f ) {
  table 0.6 0.05 0.4 0.95;
}
"""
    assert read_bif(write(tmp_path / "d.bif", text)).tables[1].tolist() == [[0.6, 0.4], [0.05, 0.95]]
    path = write(tmp_path / "d.bif", text.replace("0.6 0.05 0.4 0.95", "0.6 0.4 0.05 0.95"))
    with pytest.raises(ValueError, match=r"d.bif, line 6: the table of l sums to one only if l changes fastest"):
        read_bif(path)


def test_rounded_rows_are_kept_and_normalised_in_the_graph(tmp_path):
    text = "variable a { type discrete [3] { x, y, z }; }\nprobability ( a ) {\n table 0.333, 0.333, 0.333; }\n"
    with pytest.warns(UserWarning, match=r"r.bif, line 3: a distribution of a sums to 0.999"):
        network = read_bif(write(tmp_path / "r.bif", text))
    assert network.tables[0].tolist() == [0.333] * 3
    graph, potentials = network.factor_graph()
    assert graph.log_partition(potentials)[0] == pytest.approx(0.0, abs=1e-12)
    graph, potentials = network.factor_graph(normalize=False)
    assert graph.log_partition(potentials)[0] == pytest.approx(np.log(0.999), rel=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_bif(write(tmp_path / "r.bif", text.replace("0.333", "0.3333333")))


def test_evidence_by_name_or_number(network):
    assert network.evidence({"alarm": "very loud", "quake": "1", "0": "yes"}) == {1: 0, 2: 1, 0: 0}
    assert network.evidence({"alarm": 2}) == {1: 2}
    reversed_names = DiscreteNetwork(("a",), (("1", "0"),), ((),), (np.array([0.5, 0.5]),))
    assert reversed_names.evidence({"a": "1"}) == {0: 0}  # the name, not the number
    for observed, message in (
        ({"fire": "yes"}, "the network has no variable 'fire'; there are burglary, alarm, quake"),
        ({"alarm": "loud"}, "variable alarm has no state 'loud'; there are very loud, low, off"),
        ({"alarm": 3}, "variable alarm has no state '3'"),
        ({"3": "yes"}, "the network has no variable '3'"),
        ({"alarm": "low", "1": "off"}, "variable alarm is observed in two states"),
    ):
        with pytest.raises(ValueError, match=message):
            network.evidence(observed)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (ALARM, "", 1, "the file ends without a variable"),
        ("network", "net", 2, "expected network, variable or probability, got 'net'"),
        ('"the alarm" {', "the alarm {", 2, "expected '{' after network, got 'alarm'"),
        ("property author", "author", 3, "expected property or '}', got 'author'"),
        ("variable burglary {", "variable {", 5, "expected the name of a variable, got '{'"),
        (
            "type discrete [ 2 ] { yes, no };",
            "type continuous;",
            6,
            "the type of burglary must be discrete, got 'continuous'",
        ),
        ("[ 2 ] { yes, no }", "[ 3 ] { yes, no }", 6, "burglary must have 3 states, at least one; got 2"),
        ("[ 2 ] { yes, no }", "[ 2 ] { yes, yes }", 6, "burglary must have different states, got yes, yes"),
        ("[ 2 ] { yes, no }", "[ 2 ( yes, no }", 6, "expected ']' after the number of states, got '('"),
        ("  type discrete [ 2 ] { yes, no };\n", "", 7, "variable burglary has no type"),
        ("variable quake", "variable alarm", 12, "variable alarm is declared twice"),
        ("alarm | burglary, quake", "alarm | burglary, fire", 13, "there is no variable fire"),
        ("alarm | burglary, quake", "alarm | burglary, alarm", 13, "must have different variables"),
        ("/* the", "/ the", 13, "expected table, default, '(' or '}', got '/'"),
        ("is free */", "is free", 13, "a comment that does not end"),
        (BROKEN_ROWS, "(no) 0.0, 0.01, 0.99;", 15, "a row of alarm must have 2 states of parents, got 1"),
        (BROKEN_ROWS, "(no, maybe) 0.0, 0.01, 0.99;", 15, "quake has no state 'maybe'; there are yes, no"),
        (BROKEN_ROWS, "(no, no) 0.01, 0.99;", 15, "a distribution of alarm must have 3 numbers, got 2"),
        (BROKEN_ROWS, "(no, no) 0.0, -1, 0.99;", 15, "probabilities must be finite numbers that are not negative, got '-1'"),
        (BROKEN_ROWS, "(no, no) 0.0, x, 0.99;", 15, "got 'x'"),
        (BROKEN_ROWS, "(no, no) 0.0, 0.01, 0.99", 16, "expected probabilities, got '('"),
        (BROKEN_ROWS, "(no, no) 0, 0, 0;", 15, "a distribution of alarm sums to zero"),
        ("(yes, yes) 0.9", "(no, no) 0.9", 16, "the row (no, no) of alarm is there twice"),
        ("  default 0.5, 0.25, 0.25;\n", "", 13, "the distribution of alarm has no numbers for (yes, no)"),
        ("default 0.5, 0.25, 0.25;", "default 1, 0, 0; default 1, 0, 0;", 18, "got 'default' for the second time"),
        ("default 0.5", "table 0.5", 18, "the distribution of alarm must have a table or rows, not both"),
        ("table 0.1, 0.9;", "table 0.1, 0.4, 0.5;", 20, "the table of burglary must have 2 numbers, got 3"),
        ("( quake )", "( burglary )", 21, "burglary has a distribution already, on line 20"),
        ("probability ( burglary ) { table 0.1, 0.9; }\n", "", 22, "the file ends without the distribution of burglary"),
        ("table 0.02 0.98;\n}", "table 0.02 0.98;", 22, "the file ends where table, default, '(' or '}' should be"),
        (
            "( burglary ) { table 0.1, 0.9; }",
            "( burglary | alarm ) { default 0.1, 0.9; }",
            20,
            "the network must have no cycle",
        ),
    ],
)
def test_malformed_networks(old, new, line, message, tmp_path):
    assert old in ALARM
    path = write(tmp_path / "bad.bif", ALARM.replace(old, new, 1))
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        read_bif(path)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{path}, line {line}: ")


def test_any_cut_of_a_file_is_refused_by_name(tmp_path):
    whole = ALARM.rstrip()
    for end in range(0, len(whole), 7):
        path = write(tmp_path / "cut.bif", whole[:end])
        with pytest.raises(ValueError, match=r"cut\.bif, line \d+: "):
            read_bif(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variables": ("a", "a")}, "variables must be different names"),
        ({"states": (("0", "1"),)}, "states must have an entry for each of 2 variables, got 1"),
        ({"states": (("0", "0"), ("0", "1"))}, "the states of a must be different"),
        ({"parents": ((), ("c",))}, "the parents of b must be different other variables"),
        ({"parents": (("b",), ("a",)), "tables": (np.ones((2, 2)),) * 2}, "no cycle, got "),
        ({"tables": (np.ones(2), np.ones(2))}, r"the table of b must have shape \(2, 2\), got \(2,\)"),
        ({"tables": (np.ones(2), -np.ones((2, 2)))}, "the table of b must hold finite probabilities"),
    ],
)
def test_bad_networks_are_refused(change, message):
    good = {
        "variables": ("a", "b"),
        "states": (("0", "1"),) * 2,
        "parents": ((), ("a",)),
        "tables": (np.full(2, 0.5), np.full((2, 2), 0.5)),
    }
    assert DiscreteNetwork(**good).index == {"a": 0, "b": 1}
    with pytest.raises(ValueError, match=message):
        DiscreteNetwork(**(good | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"tables": (np.array([2.0, 3.0]), np.full((2, 2), 0.5))},
            "the table of a must sum to one along its last axis, got 5",
        ),
        ({"tables": (np.zeros(2), np.full((2, 2), 0.5))}, "sum to one along its last axis, got 0"),
        ({"tables": (np.array([np.nan, 1.0]), np.full((2, 2), 0.5))}, "finite probabilities"),
        ({"tables": (["x", "y"], np.full((2, 2), 0.5))}, "tables must hold numbers"),
        ({"tables": (np.array([0.5, 0.5j]), np.full((2, 2), 0.5))}, "tables must hold numbers"),
        ({"tables": None}, "tables must be a tuple with an entry for each variable, got None"),
        ({"variables": (1, 2)}, "names in variables must be strings, got 1"),
        ({"variables": "ab"}, "variables must be a tuple"),
        ({"states": ("01", "01")}, "states must be tuples of names, got '01'"),
        ({"states": ((0, 1), (0, 1))}, "names in states must be strings, got 0"),
        ({"parents": ((), None)}, "parents must be tuples of names"),
    ],
)
def test_networks_made_by_hand_are_checked(change, message):
    good = {
        "variables": ["a", "b"],
        "states": [["0", "1"]] * 2,
        "parents": [(), ("a",)],
        "tables": [[0.5, 0.5], [[1, 0], [0.25, 0.75]]],
    }
    network = DiscreteNetwork(**good)  # lists are as good
    assert network.tables[1].dtype == np.float64
    assert network.factor_graph()[0].n_factors == 2
    with pytest.raises(ValueError, match=message):
        DiscreteNetwork(**(good | change))


def test_distributions_that_do_not_sum_to_one_are_refused(tmp_path):
    text = "variable a { type discrete [2] { x, y }; }\nprobability ( a ) {\n table 2, 3; }\n"
    for numbers, total in (("2, 3", "5"), ("0.5, 0.4", "0.9"), ("1e308, 1e308", "inf")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match=rf"s.bif, line 3: a distribution of a sums to {total} instead of one"):
                read_bif(write(tmp_path / "s.bif", text.replace("2, 3", numbers)))


def test_numbers_as_evidence_are_names_where_a_state_is_a_number():
    tables = (np.array([0.5, 0.5]), np.array([0.2, 0.3, 0.5]))
    network = DiscreteNetwork(("a", "b"), (("no", "yes"), ("1", "2", "3")), ((), ()), tables)
    for state in ("1", 1, 1.0):
        assert network.evidence({"b": state}) == {1: 0}
    assert network.evidence({"a": 1, "b": 3}) == {0: 1, 1: 2}  # no state of a is a number: it counts
    for wrong in ({"b": 0}, {"b": "0"}, {"a": 2}, {"a": -1}, {"a": True}, {"a": None}, {"a": 0.5}):
        with pytest.raises(ValueError, match="has no state"):
            network.evidence(wrong)
    with pytest.raises(ValueError, match="observed must be a dict"):
        network.evidence(["a"])
    numbered = DiscreteNetwork(("1", "0"), (("no", "yes"),) * 2, ((), ()), (np.full(2, 0.5),) * 2)
    assert numbered.evidence({1: "yes", "0": "no"}) == {0: 1, 1: 0}


def test_sizes_of_tables_are_found_before_they_are_made(tmp_path):
    names = [f"v{i}" for i in range(70)]
    head = "".join(f"variable {name} {{ type discrete [2] {{ n, y }}; }}\n" for name in names)
    head += "".join(f"probability ( {name} ) {{ table 0.5, 0.5; }}\n" for name in names[:-1])
    for count, body, message in (
        (69, "default 0.5, 0.5;", "line 140: v69 has 69 parents, more than 31"),
        (31, "default 0.5, 0.5;", "line 140: the distribution of v69 given 31 parents needs 137 GB"),
        (31, "table 0.5, 0.5;", "needs 137 GB"),
    ):
        text = head + f"probability ( v69 | {', '.join(names[:count])} ) {{ {body} }}"
        with pytest.raises(ValueError, match=message):
            read_bif(write(tmp_path / "large.bif", text))


def test_many_states_are_read_in_linear_time(tmp_path):
    count = 20_000
    states = [f"s{i}" for i in range(count)]
    text = (
        f"variable a {{ type discrete [{count}] {{ {' '.join(states)} }}; }} variable b {{ type discrete [1] {{ x }}; }}\n"
    )
    text += f"probability ( a ) {{ table {' '.join([repr(1 / count)] * count)}; }}\n"
    text += "probability ( b | a ) {" + "\n".join(f"({state}) 1;" for state in states) + "}\n"
    began = time.process_time()
    network = read_bif(write(tmp_path / "many.bif", text))
    assert network.tables[1].shape == (count, 1)
    assert time.process_time() - began < 5.0  # a search through all states for every row takes longer
    bad = text.replace("(s7) 1;", "(none) 1;")
    with pytest.raises(ValueError, match=r"a has no state 'none'; there are s0, .*, s9, …$"):
        read_bif(write(tmp_path / "many.bif", bad))


SIZES = {  # nodes, arcs, free parameters
    "asia": (8, 8, 18),
    "cancer": (5, 4, 10),
    "earthquake": (5, 4, 10),
    "survey": (6, 6, 21),
    "sachs": (11, 17, 178),
    "child": (20, 25, 230),
    "insurance": (27, 52, 1008),
    "alarm": (37, 46, 509),
}


@pytest.mark.data
@pytest.mark.parametrize("name", SIZES)
def test_networks_of_the_repository(name, data_dir, tmp_path):
    network = read_bif(data_dir / "bif" / f"{name}.bif.gz")
    free = sum(table.size - table.size // table.shape[-1] for table in network.tables)
    assert (len(network.variables), sum(map(len, network.parents)), free) == SIZES[name]
    assert max(np.abs(table.sum(-1) - 1.0).max() for table in network.tables) <= 1e-6
    graph, potentials = network.factor_graph()
    assert abs(graph.log_partition(potentials)[0]) <= 1e-10
    assert all(
        set(scope[:-1]) == {network.index[p] for p in of} for scope, of in zip(graph.factors, network.parents, strict=True)
    )
    write_bif(tmp_path / "again.bif.gz", network)
    same(read_bif(tmp_path / "again.bif.gz"), network)
    io.write_uai(tmp_path / "again.uai", graph, potentials, kind="BAYES")
    again, values = io.read_uai(tmp_path / "again.uai")
    assert again.factors == graph.factors
    np.testing.assert_allclose(values, potentials, rtol=1e-15, atol=2e-16)


@pytest.mark.data
def test_asia_against_enumeration(data_dir):
    network = read_bif(data_dir / "bif" / "asia.bif.gz")
    known = network.evidence({"smoke": "yes", "xray": "yes"})
    totals = [np.zeros(2) for _ in range(8)]
    for y in choices([2] * 8).tolist():
        if all(y[v] == s for v, s in known.items()):
            p = 1.0
            for v, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
                p *= table[(*(y[network.index[u]] for u in parents), y[v])]
            for v in range(8):
                totals[v][y[v]] += p
    graph, potentials = network.factor_graph()
    given, index = graph.condition(known)
    found = given.variable_marginals(given.infer(potentials[index]).marginals)
    for v in set(range(8)) - set(known):
        np.testing.assert_allclose(found[v], totals[v] / totals[v].sum(), atol=1e-12)
