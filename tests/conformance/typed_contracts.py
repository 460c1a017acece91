"""What `mypy` checks besides the source: points, objectives, sources of batches and feature maps are what contracts say.

Nothing here runs. A new objective is one more argument, in the lists of what it offers.
"""

from __future__ import annotations

from typing import Any

from partita.bayesnet import objective as network
from partita.chain.features.chain import ChainFeatures, Scores
from partita.chain.features.tied import TiedFeatures
from partita.chain.objective import boltzmann as boltzmann_chain, composite as chain_composite, likelihood as chain
from partita.core import contracts as c
from partita.core.results import FloatArray
from partita.features import DenseLinear, LabelFeatures, SparseLinear, TiedTables
from partita.graph.objective import composite, likelihood as graph
from partita.matching.features import AloneFeatures, AttributePairs, EdgeFeatures, EdgeMap, NodePairs, PaddedFeatures
from partita.matching.objective import exact as exact_matching, likelihood as matching
from partita.objectives import l1
from partita.objectives.batches import Parts, Residual, SumOverExamples
from partita.objectives.constraints import constrained
from partita.objectives.constraints.asked import ModelledObjective
from partita.softmax.bounds import accumulate
from partita.softmax.objective import elastic_net, latent, likelihood
from partita.softmax.objective.batches import Batches
from partita.softmax.objective.leverages import LeveragedBatches
from partita.solvers.em import EMObjective
from partita.solvers.newton import NewtonPoint
from partita.solvers.orthant import OrthantPoint
from partita.tree import objective as dependency


def points(
    softmax: likelihood.LikelihoodPoint,
    hidden: latent.LatentPoint,
    chains: chain.ChainPoint,
    windows: chain_composite.CompositePoint,
    boltzmann: boltzmann_chain.BoltzmannChainPoint,
    graphs: graph.GraphPoint,
    objects: composite.CompositePoint,
    matchings: matching.MatchingPoint,
    small_matchings: exact_matching.ExactMatchingPoint,
    trees: dependency.TreePoint,
    net: network.NetworkPoint,
    lasso: elastic_net.ElasticNetPoint,
    orthant: l1.L1Point,
    bounded: constrained.ConstrainedPoint,
) -> tuple[Any, ...]:
    smooth: list[c.Point] = [softmax, hidden, chains, windows, boltzmann, graphs, objects, matchings, net, small_matchings]
    others: list[c.Point] = [lasso, orthant, bounded]
    newton: NewtonPoint = softmax
    products: list[c.HasHessianProduct] = [softmax, hidden, chains, windows, boltzmann, graphs, objects, orthant]
    products.append(small_matchings)
    scaled: list[c.HasPreconditioner] = [softmax, hidden, chains, windows, boltzmann, graphs, objects, matchings, orthant]
    low_rank: list[c.HasLowRankModel] = [
        softmax,
        hidden,
        chains,
        windows,
        boltzmann,
        graphs,
        objects,
        small_matchings,
        trees,
    ]
    modelled: list[c.HasModel] = [softmax, hidden, chains, windows, boltzmann, graphs, objects, small_matchings, trees]
    modelled.append(bounded)
    planes: list[c.HasSubspace] = [softmax, hidden, chains, windows, boltzmann, graphs, objects, small_matchings, trees]
    planes.append(bounded)
    em: list[c.HasEMStep] = [hidden, net]
    lines: c.HasLineBound = chains
    orthants: OrthantPoint = orthant
    working: c.HasWorkingSet = lasso
    steps: c.HasConstrainedStep = bounded
    return smooth, others, newton, products, scaled, modelled, low_rank, planes, em, lines, orthants, working, steps


def objectives(
    softmax: likelihood.Likelihood,
    hidden: latent.LatentLikelihood,
    chains: chain.ChainLikelihood,
    windows: chain_composite.ChainComposite,
    boltzmann: boltzmann_chain.BoltzmannChainLikelihood,
    graphs: graph.GraphLikelihood,
    objects: composite.GraphComposite,
    matchings: matching.MatchingLikelihood,
    net: network.NetworkLikelihood,
    lasso: elastic_net.ElasticNet,
    orthant: l1.L1,
    bounded: constrained.Constrained,
) -> tuple[Any, ...]:
    smooth: list[c.Objective] = [softmax, hidden, chains, windows, boltzmann, graphs, objects, matchings, net]
    others: list[c.Objective] = [lasso, orthant, bounded]
    batches: list[c.HasBatches] = [softmax, hidden]
    sums: list[SumOverExamples] = [chains, windows, boltzmann, graphs, objects, matchings]
    batches += sums
    sweeps: c.HasSweeps = chains
    blocks: list[c.HasBlocks] = [graphs, matchings]
    em: list[EMObjective] = [hidden, net]
    under_l1: list[l1.SmoothObjective] = [softmax, hidden, chains, windows, boltzmann, graphs, objects]
    within_sets: list[ModelledObjective] = [softmax, hidden, chains]
    return smooth, others, batches, sweeps, blocks, em, under_l1, within_sets


def sources(softmax: Batches[likelihood.Likelihood], known: LeveragedBatches, parts: Parts) -> tuple[Any, ...]:
    arrays: c.BatchSource[FloatArray, slice, accumulate.CurvatureSum] = softmax
    leveraged: c.LeveragedSource[FloatArray, slice, accumulate.CurvatureSum] = known
    residuals: c.BatchSource[Residual, tuple[int, int], Any] = parts
    return arrays, leveraged, residuals


def maps(
    dense: DenseLinear,
    sparse: SparseLinear,
    labels: LabelFeatures,
    tables: TiedTables,
    edges: EdgeFeatures,
    pairs: NodePairs,
    alone: AloneFeatures,
    padded: PaddedFeatures,
    attributes: AttributePairs,
    chains: ChainFeatures,
    tied: TiedFeatures,
) -> tuple[Any, ...]:
    arrays: list[c.FeatureMap[FloatArray]] = [dense, sparse, labels, tables, edges, pairs, alone, padded]
    scores: list[c.FeatureMap[Scores]] = [chains, tied]
    weights: list[EdgeMap] = [edges, pairs, alone, padded, attributes]
    return arrays, scores, weights
