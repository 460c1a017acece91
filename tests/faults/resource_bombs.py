"""Small inputs that ask for more than there is: each must be refused by a sentence, soon, under a limit of memory."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from harness import Counts, can_limit_memory, judge, run_cases

#: Bytes that a case may take beyond what the process has after its imports.
GROWTH = 2 << 30
#: Seconds in which a refusal must come.
SOON = 20.0


class Bomb(NamedTuple):
    """A snippet, and what may come of it."""

    name: str
    code: str
    #: The refusal says one of these words (|).
    says: str = ""
    #: Whether an answer is right too: the work may be cheap after all.
    may_answer: bool = False


GRAPHS = [
    Bomb("a table of 2^64 entries", "FactorGraph([2] * 64, [tuple(range(64))]).log_partition([])"),
    Bomb("a table of 2^63 entries", "FactorGraph([2] * 63, [tuple(range(63))]).log_partition([])"),
    Bomb("a table of 5^28 entries", "FactorGraph([5] * 28, [tuple(range(28))]).log_partition([])"),
    Bomb("a variable of 10^9 states", "FactorGraph([10**9], [(0,)]).log_partition(np.zeros(4))"),
    Bomb("ising with a far edge", "pt.MarkovNetwork.ising([(0, 2**40)])"),
    Bomb("ising with a far edge, fitted", "pt.MarkovNetwork.ising([(0, 2**26)]).fit(np.zeros((2, 2), int))"),
    Bomb("a Boltzmann machine of 10^6", "pt.MarkovNetwork.boltzmann(10**6)"),
    Bomb("potts with 10^9 states", "pt.MarkovNetwork.potts([(0, 1)], 10**9).fit(np.zeros((3, 2), int))"),
    Bomb("a state of 10^9", "pt.MarkovNetwork([(0, 1)]).fit(np.array([[0, 0], [10**9, 1]]))"),
    Bomb("10^12 draws of a network", "pt.MarkovNetwork.ising([(0, 1)], l2=1.0).fit(STATES).sample(10**12)"),
    Bomb("exact sums of a 60 x 60 grid", "grid(60).log_partition(np.zeros(grid(60).size), 'exact')"),
    Bomb("edges of vertex 10^9", "pt.MatchingCRF(bipartite=False).fit([far()], [[1, 0]])"),
]
CHAINS = [
    Bomb("2^30 hashed columns", "pt.ChainCRF(hashing=2**30).fit(X, Y).predict(X)", may_answer=True),
    Bomb("2^40 hashed columns", "pt.ChainCRF(hashing=2**40).fit(X, Y)"),
    Bomb("10^5 best labellings", "pt.ChainCRF().fit(X, Y).predict_kbest([X[0] * 2000], 10**5)"),
    Bomb("10^12 best labellings", "pt.ChainCRF().fit(X, Y).predict_kbest(X, 10**12)", may_answer=True),
    Bomb("10^6 hidden states of a chain", "pt.LatentDynamicCRF(n_hidden=10**6).fit(X, Y)"),
    Bomb("10^6 hidden states of a sequence", "pt.HiddenChainCRF(n_hidden=10**6).fit([[['a']], [['b']]], ['x', 'y'])"),
    Bomb("samples of a long chain", "pt.BoltzmannChain().fit([['a', 'b']], [['L', 'M']]).sample([10**12])"),
    Bomb("a template far away", "tagged('U00:%x[-1000000000,0]\\nB\\n')", may_answer=True),
    Bomb("a template of column 10^18", "tagged('U00:%x[0,1000000000000000000]\\nB\\n')"),
]
SOFTMAX = [
    Bomb("10^6 hidden states of a class", "pt.LatentSoftmax(n_hidden=10**6).fit(np.ones((9, 500)), np.arange(9))"),
    Bomb("10^12 hidden states of a class", "pt.LatentSoftmax(n_hidden=10**12).fit(np.eye(4), [0, 1, 0, 1])"),
    Bomb("10^9 starts", "pt.LatentSoftmax(n_init=10**9, max_iter=1).fit(np.eye(4), [0, 1, 0, 1])"),
    Bomb("10^12 draws of states", "pt.MaxEnt(features=np.eye(3), equality=[0.2, 0.3, 0.5]).fit().sample(10**12)"),
    Bomb("a Newton step of 10^5 weights", "pt.SoftmaxRegression(solver='newton').fit(wide(), [0, 1, 2] * 2)", "", True),
]
NETWORKS = [
    Bomb("a network with 40 parents", "pt.BayesianNetwork([(str(i), 'c') for i in range(40)]).fit(frame(40))"),
    Bomb("10^12 draws of a Bayesian network", "pt.BayesianNetwork([('0', 'c')]).fit(frame(1)).sample(10**12)"),
    Bomb("a BIF file of 10^12 states", "read_file('m.bif', bif(10**12))", may_answer=True),
]
FILES = [
    Bomb("8 GB in a model file, not named", "load_with_member('unused.npy', 1 << 33)", may_answer=True),
    Bomb("8 GB in a model file, named", "load_with_member('coef_.npy', 1 << 33, ((1 << 30) - 16,))", "memory"),
    Bomb("a model file that says 8 EB", "load_with_member('coef_.npy', 1 << 21, (1 << 60,))", "bytes"),
    Bomb("a model file with a header of 4 GB", "load_with_member('header.json', (1 << 32) - (1 << 20))", "may have"),
    Bomb("a UAI file of 10^9 states", "read_file('m.uai', b'MARKOV\\n1\\n1000000000\\n0\\n')", "needs"),
    Bomb("a UAI file of 10^18 variables", "read_file('m.uai', b'MARKOV\\n1000000000000000000\\n2\\n')", "ends"),
    Bomb("a UAI file of 60 binary variables", "read_file('m.uai', wide_factor())", "entries"),
    Bomb("a gzip file of 8 GB, UAI", "read_file('m.uai', gzip_of(1 << 33))", "needs"),
    Bomb("a gzip file of 8 GB, columns", "read_file('columns', gzip_of(1 << 33))", "needs"),
    Bomb("a gzip file of 8 GB, columns in blocks", "read_file('blocks', gzip_of(1 << 33))", "needs"),
]
BOMBS = [*GRAPHS, *CHAINS, *SOFTMAX, *NETWORKS, *FILES]


def attempt(case: dict[str, Any]) -> tuple[str, str]:
    import bombs

    try:
        exec(case["code"], vars(bombs).copy())
    except Exception as error:
        outcome, text = judge(error)
        if outcome == "refused" and case["says"] and not any(word in text for word in case["says"].split("|")):
            return "bare", f"does not say {case['says']!r}: {text}"
        return outcome, text
    return ("legal", "") if case["may_answer"] else ("silent", "answered")


def main(budget_seconds: float, seed: int, chosen: list[Bomb] | None = None) -> Counts:
    if not can_limit_memory():
        return Counts(skipped="no limit of memory here: it takes /proc and the module resource")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")
    cases = [(bomb.name, bomb._asdict()) for bomb in (BOMBS if chosen is None else chosen)]
    return run_cases("resource_bombs:attempt", cases, max(budget_seconds, SOON * len(cases)), seconds=SOON, growth=GROWTH)
