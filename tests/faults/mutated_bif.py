"""Changed Bayesian networks in the interchange format BIF."""

from __future__ import annotations

import itertools
import os
from typing import Any

from harness import Counts, Worker, judge, run_cases, scratch
from texts import changed, corpus

WORDS = [b"network", b"variable", b"probability", b"type", b"discrete", b"table", b"default", b"property", b"[", b"]"]
NETWORKS = [
    b"""network unknown {
}
variable rain {
  type discrete [ 2 ] { yes, no };
}
variable wet {
  type discrete [ 3 ] { dry, damp, wet };
}
probability ( rain ) {
  table 0.2, 0.8;
}
probability ( wet | rain ) {
  (yes) 0.1, 0.2, 0.7;
  (no) 0.9, 0.05, 0.05;
}
""",
    b"""network n { property "x y" ; }
variable a { type discrete [ 2 ] { t, f }; property position = (1, 2) ; }
probability ( a ) { table .5, .5 ; }
// a comment
/* and another */
""",
]


def attempt(path: str) -> tuple[str, str]:
    import numpy as np

    from partita import BayesianNetwork
    from partita.io import read_bif

    try:
        network = read_bif(path)
        graph, potentials = network.factor_graph()
        result = graph.infer(potentials)
        if np.isnan(result.log_z).any():
            return "silent", "NaN"
        if hasattr(BayesianNetwork, "from_bif"):
            BayesianNetwork.from_bif(path)
    except Exception as error:
        return judge(error)
    return "legal", ""


def main(budget_seconds: float, seed: int, most: int | None = None, worker: Worker | None = None) -> Counts:
    with scratch() as folder:
        path = os.path.join(folder, "file.bif")

        def cases() -> Any:
            for what, text in itertools.chain(corpus("bif"), changed(NETWORKS, seed, WORDS)):
                with open(path, "wb") as file:
                    file.write(text)
                yield what, path

        return run_cases("mutated_bif:attempt", cases(), budget_seconds, most=most, worker=worker)
