"""Bethe and tree-reweighted free energies of factor graphs: from messages, and at marginals that agree with each other.

Tuples of arrays are those of `factor_layout`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.results import FloatArray
from ...numerics.jit import in_place, kernel, step
from ...numerics.math import exp
from .belief_propagation import factor_messages

#: A few units in the last place.
ROUNDING = 2e-15
#: The mass that tables with forbidden entries may lack.
SMALL = 1e-8
#: Rounds of iterative proportional fitting of such tables.
FITTING = 20


class VariableSums(NamedTuple):
    """Numbers of the variables of a chunk, which the energies of its factors need."""

    log_sums: FloatArray  #: the log of the sum of the belief
    largest: FloatArray  #: what the log belief adds up, at most
    terms: FloatArray  #: and of how many terms: rounding is in proportion to both


@in_place
def _largest_terms(layout, chunk, rho, messages, largest, terms):
    """Write what each variable's log belief adds up, at most, and of how many terms."""
    for f in chunk.factors:
        for e in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
            i = layout.edge_var[e]
            high = 0.0
            for x in range(layout.edge_offsets[e], layout.edge_offsets[e + 1]):
                high = max(high, abs(messages.to_variables[x]))
            largest[i - chunk.first] += max(1.0, rho[f]) * high
            terms[i - chunk.first] += 1.0
    for i in range(chunk.first, chunk.last):
        high = 0.0
        for s in range(layout.var_offsets[i], layout.var_offsets[i + 1]):
            if messages.log_beliefs[s] > -np.inf:
                high = max(high, abs(messages.log_beliefs[s]))
        largest[i - chunk.first] += high


@step
def _variable_belief(i, layout, log_beliefs, beliefs):
    """The normalised belief of a variable; returns the log of the sum."""
    top = -np.inf
    for s in range(layout.var_offsets[i], layout.var_offsets[i + 1]):
        top = max(top, log_beliefs[s])
    z = 0.0
    for s in range(layout.var_offsets[i], layout.var_offsets[i + 1]):
        beliefs[s] = exp(log_beliefs[s] - top)
        z += beliefs[s]
    for s in range(layout.var_offsets[i], layout.var_offsets[i + 1]):
        beliefs[s] /= z
    return top + np.log(z)


@step
def _factor_free_energy(f, layout, first, tables, rho, messages, beliefs, work, sums):
    """The belief of factor f; what it adds to the value, for a counting number of one, and to the slack."""
    c = factor_messages(f, layout, tables, rho, False, messages, work)
    off = layout.fac_offsets[f]
    z = 0.0
    for x in range(layout.fac_offsets[f + 1] - off):
        z += work.belief[x]
    for x in range(layout.fac_offsets[f + 1] - off):
        beliefs.tables[off + x] = work.belief[x] / z
    high = 0.0
    for x in range(off, layout.fac_offsets[f + 1]):
        if tables[x] > -np.inf:
            high = max(high, abs(tables[x]))
    high /= rho[f]
    part = c
    worst = 0.0
    p = 0
    for e in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
        i = layout.edge_var[e]
        part -= sums.log_sums[i - first]
        high += sums.largest[i - first]
        for x in range(layout.var_offsets[i + 1] - layout.var_offsets[i]):
            if messages.log_beliefs[layout.var_offsets[i] + x] > -np.inf:
                change = work.outgoing[p] - messages.to_variables[layout.edge_offsets[e] + x]
                worst = max(worst, change - c + sums.log_sums[i - first])
            p += 1
    return part, worst + ROUNDING * high


@in_place
def _add_free_energy(layout, chunk, tables, rho, messages, beliefs, value, slack, work, sums):
    first = chunk.first
    _largest_terms(layout, chunk, rho, messages, sums.largest, sums.terms)
    for i in range(first, chunk.last):
        slack[layout.var_examples[i]] += ROUNDING * sums.terms[i - first] * sums.largest[i - first]
        sums.log_sums[i - first] = _variable_belief(i, layout, messages.log_beliefs, beliefs.states)
        value[layout.var_examples[i]] += sums.log_sums[i - first]
    for f in chunk.factors:
        part, above = _factor_free_energy(f, layout, first, tables, rho, messages, beliefs, work, sums)
        value[layout.fac_examples[f]] += rho[f] * part
        slack[layout.fac_examples[f]] += rho[f] * above


@kernel
def free_energy(layout, chunk, tables, rho, messages, beliefs, value, slack, work):
    """Beliefs of a chunk; adds to `value` the reweighted log Z of its examples, to `slack` how far log Z may be above it.

    With c_i, c_a the logarithms of the sums of beliefs, value = sum_i c_i + sum_a rho_a (c_a - sum_{i in a} c_i), and the
    slack is sum_a rho_a max_i max_{x_i} log(sum of b_a over the others / b_i), which is the change of a message. What
    rounding may do is added to it: messages that diverge cancel in the value, and lose its digits.
    """
    n = chunk.last - chunk.first
    sums = VariableSums(np.empty(n), np.zeros(n), np.ones(n))
    _add_free_energy(layout, chunk, tables, rho, messages, beliefs, value, slack, work, sums)


@step
def _fit(f, layout, states, forbids, belief, missing):
    """Iterative proportional fitting of the belief of a factor to the marginals of its variables.

    Scaled once (often, where nothing can be added to forbidden entries), then down only: ``missing`` gets what each marginal
    lacks then, one variable after another.
    """
    size = layout.fac_offsets[f + 1] - layout.fac_offsets[f]
    last = (FITTING if forbids else 1) + 1
    for turn in range(last + 1):
        at = 0
        for e in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
            a = layout.var_offsets[layout.edge_var[e]]
            count = layout.var_offsets[layout.edge_var[e] + 1] - a
            stride = layout.strides[e]
            for x in range(count):
                total = 0.0
                for block in range(x * stride, size, stride * count):
                    for y in range(block, block + stride):
                        total += belief[y]
                factor = states[a + x] / total if total > 0.0 else 1.0
                if turn == last:
                    missing[at + x] = max(states[a + x] - total, 0.0)
                elif turn < last - 1 or factor < 1.0:
                    for block in range(x * stride, size, stride * count):
                        for y in range(block, block + stride):
                            belief[y] *= factor
            at += count


@step
def _add_product(f, layout, missing, total, belief):
    """Add what marginals lack, `total` for each variable, as a product of them."""
    for x in range(layout.fac_offsets[f + 1] - layout.fac_offsets[f]):
        more, at = total, 0
        for e in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
            count = layout.var_offsets[layout.edge_var[e] + 1] - layout.var_offsets[layout.edge_var[e]]
            more *= missing[at + (x // layout.strides[e]) % count] / total
            at += count
        belief[x] += more


@step
def _variable_energy(i, layout, states, beliefs):
    """The mean score and the entropy of a variable."""
    total, entropy = 0.0, 0.0
    for s in range(layout.var_offsets[i], layout.var_offsets[i + 1]):
        p = beliefs[s]
        if p > 0.0:
            total += states[s] * p
            entropy -= p * np.log(p)
    return total, entropy


@step
def _consistent_factor(f, layout, tables, rho, beliefs, work):
    """The mean score of factor f and rho times its entropy, its belief being made to agree with its variables."""
    off = layout.fac_offsets[f]
    size = layout.fac_offsets[f + 1] - off
    tau, lacking = work.log_belief, work.outgoing
    for x in range(size):
        tau[x] = beliefs.tables[off + x]
    high, forbids = 0.0, False
    for x in range(off, off + size):
        if tables[x] == -np.inf:
            forbids = True
        else:
            high = max(high, abs(tables[x]))
    _fit(f, layout, beliefs.states, forbids, tau, lacking)
    missing = 0.0
    for x in range(layout.edge_offsets[layout.fac_ptr[f] + 1] - layout.edge_offsets[layout.fac_ptr[f]]):
        missing += lacking[x]
    if forbids and missing > SMALL:
        return -np.inf
    total = -missing * (high + rho[f] * 40.0) if forbids else 0.0  # what it could cost
    if missing > 0.0 and not forbids:
        _add_product(f, layout, lacking, missing, tau)
    for x in range(size):
        if tau[x] > 0.0:
            total += tables[off + x] * tau[x] - rho[f] * tau[x] * np.log(tau[x])
    return total


@in_place
def _add_consistent(layout, chunk, potentials, rho, beliefs, value, work, entropy):
    first = chunk.first
    for i in range(first, chunk.last):
        total, entropy[i - first] = _variable_energy(i, layout, potentials.states, beliefs.states)
        value[layout.var_examples[i]] += total + entropy[i - first]
    for f in chunk.factors:
        total = _consistent_factor(f, layout, potentials.tables, rho, beliefs, work)
        if total == -np.inf:
            value[layout.fac_examples[f]] = -np.inf
            continue
        for e in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
            total -= rho[f] * entropy[layout.edge_var[e] - first]
        value[layout.fac_examples[f]] += total


@kernel
def consistent_free_energy(layout, chunk, potentials, rho, beliefs, value, work):
    """Adds <potentials, tau> + H_rho(tau) to `value`, with the beliefs of factors made to agree with those of variables.

    The belief of a factor is fitted to the marginals of its variables, and what is missing is added as a product. In tables
    that forbid entries nothing can be added: if more than `SMALL` is missing there, the value is -inf, else it is taken off
    what that could cost.
    """
    _add_consistent(layout, chunk, potentials, rho, beliefs, value, work, np.empty(chunk.last - chunk.first))


@in_place
def mutual_information(layout, tables, out, p):
    """For the belief of each factor the sum of the entropies of its variables less its own; p is scratch."""
    for f in range(len(layout.fac_ptr) - 1):
        off = layout.fac_offsets[f]
        size = layout.fac_offsets[f + 1] - off
        total = 0.0
        for x in range(off, off + size):
            if tables[x] > 0.0:
                total += tables[x] * np.log(tables[x])
        for e in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
            count = layout.edge_offsets[e + 1] - layout.edge_offsets[e]
            stride = layout.strides[e]
            for x in range(count):
                p[x] = 0.0
                for block in range(x * stride, size, stride * count):
                    for y in range(off + block, off + block + stride):
                        p[x] += tables[y]
                if p[x] > 0.0:
                    total -= p[x] * np.log(p[x])
        out[f] = total
