"""Chain CRFs against python-crfsuite: same features, same penalty, interleaved, each run in a process of its own.

Rows of the table: seconds to CRFsuite's final objective (one and two threads), seconds of one evaluation, final objective,
seconds from text file to model, tagged tokens per second (features included), chunk F1 or accuracy, peak memory.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from datasets import data_directory
from harness import digits, machine, markdown, print_load, write_results

from partita import ChainCRF, SequenceData, metrics
from partita.chain.features.chain import ChainFeatures
from partita.chain.features.pairs import label_indicator, label_pairs, state_pairs
from partita.core import Workers
from partita.features import Templates
from partita.io import read_columns, read_conllu
from partita.objectives import ChainLikelihood

L2 = 2.0  # c2 = 1 of CRFsuite


def read(name, part):
    """Columns and labels of a part of a data set, and the feature set used for it."""
    directory = data_directory()
    if name == "conll2000":
        columns = read_columns(directory / name / f"{part}.txt.gz")
        return columns, 2, "chunking"
    if name == "conll2002_esp":
        columns = read_columns(directory / name / f"esp.{ {'train': 'train', 'test': 'testb'}[part] }.gz")
        return columns, 2, "ner"
    columns = read_conllu(directory / name / f"en_ewt-ud-{part}.conllu.gz", columns=("form", "xpos"))
    return columns, 1, "word"


def as_lists(matrix, attributes, offsets):
    """Attributes of every token as lists of strings, what python-crfsuite takes."""
    names = np.asarray(attributes, dtype=object)[matrix.indices].tolist()
    rows = [names[a:b] for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]
    return [rows[a:b] for a, b in itertools.pairwise(offsets)]


def quality(name, gold, found):
    """Chunk F1 for chunking and names, token accuracy for tags."""
    if name == "ud_english_ewt":
        return metrics.token_accuracy(gold, found)
    return metrics.chunk_scores(gold, found).f1


def rival(name, limit):
    """CRFsuite on attributes that are already computed."""
    import pycrfsuite

    columns, label, kind = read(name, "train")
    templates = Templates.builtin(kind)
    matrix, attributes = templates.fit(columns)
    X, y = as_lists(matrix, attributes, columns.offsets)[:limit], columns.sequences(label)[:limit]
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={"c1": 0.0, "c2": L2 / 2.0}, verbose=False)
    start = time.perf_counter()
    for sequence, labels in zip(X, y, strict=True):
        trainer.append(sequence, labels)
    appended = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        start = time.perf_counter()
        trainer.train(path)
        seconds = time.perf_counter() - start
        log = trainer.logparser.iterations
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        test, _, _ = read(name, "test")
        test_matrix = templates.transform(test)
        found = [tagger.tag(sequence) for sequence in as_lists(test_matrix, attributes, test.offsets)]
    evaluations = sum(line["linesearch_trials"] for line in log) + 1
    return {
        "append": appended,
        "seconds": seconds,
        "iterations": len(log),
        "evaluation": sum(line["time"] for line in log) / evaluations,
        "evaluations": evaluations,
        "objective": log[-1]["loss"],
        "curve": [(line["loss"], line["time"]) for line in log],
        "quality": quality(name, test.sequences(label), found),
    }


def evaluated(data, y, threads):
    """The objective of the same problem."""
    classes, codes = np.unique(np.concatenate(y), return_inverse=True)
    indicator = label_indicator(codes, len(classes))
    pairs = state_pairs(data.X, indicator, False, 0.0)
    transitions = label_pairs(indicator, data.offsets, False, 0.0)
    features = ChainFeatures(data.X, data.offsets, len(classes), *pairs, transitions, workers=Workers(threads))
    return ChainLikelihood(features, codes, penalty=L2)


def ours(name, limit, threads, solver, tol, max_iter):
    """ChainCRF on attributes that are already computed."""
    columns, label, kind = read(name, "train")
    templates = Templates.builtin(kind)
    matrix, _ = templates.fit(columns)
    y = columns.sequences(label)[:limit]
    data = SequenceData(matrix, lengths=np.diff(columns.offsets))[:limit]
    ChainCRF(n_jobs=threads).fit(data[:50], y[:50])  # load the compiled kernels
    model = ChainCRF(l2=L2, solver=solver, tol=tol, max_iter=max_iter, n_jobs=threads)
    start = time.perf_counter()
    model.fit(data, y)
    seconds = time.perf_counter() - start
    trace = model.trace_
    setup = seconds - float(trace.seconds[-1])
    test, _, _ = read(name, "test")
    found = model.predict(SequenceData(templates.transform(test), lengths=np.diff(test.offsets)))
    objective, times = evaluated(data, y, threads), []
    theta = np.random.default_rng(0).standard_normal(objective.size)
    for scale in (0.1, 0.2, 0.3, 0.4, 0.5):
        start = time.perf_counter()
        _ = objective.at(scale * theta).gradient
        times.append(time.perf_counter() - start)
    return {
        "seconds": seconds,
        "setup": setup,
        "iterations": model.n_iter_,
        "evaluation": min(times),
        "objective": float(trace.objective[-1]),
        "gap": float(trace.gap[-1]),
        "curve": [(float(v), float(s) + setup) for v, s in zip(trace.objective, trace.seconds, strict=True)],
        "quality": quality(name, test.sequences(label), found),
    }


def chunking_features(words, tags):
    """The loop over tokens that everybody writes: CRFsuite's chunking features."""
    items = []
    last = len(words) - 1
    for t in range(len(words)):
        item = [f"w[{d}]={words[t + d]}" for d in range(-2, 3) if 0 <= t + d <= last]
        item += [f"w[{d}]|w[{d + 1}]={words[t + d]}|{words[t + d + 1]}" for d in (-1, 0) if t + d >= 0 and t + d < last]
        item += [f"pos[{d}]={tags[t + d]}" for d in range(-2, 3) if 0 <= t + d <= last]
        item += [
            f"pos[{d}]|pos[{d + 1}]={tags[t + d]}|{tags[t + d + 1]}" for d in range(-2, 2) if t + d >= 0 and t + d < last
        ]
        item += [
            f"pos[{d}]|pos[{d + 1}]|pos[{d + 2}]={tags[t + d]}|{tags[t + d + 1]}|{tags[t + d + 2]}"
            for d in range(-2, 1)
            if t + d >= 0 and t + d + 2 <= last
        ]
        items.append(item + ["__BOS__"] * (t == 0) + ["__EOS__"] * (t == last))
    return items


def plain_read(path):
    """Sentences of a gzipped column file."""
    import gzip

    sentence = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                sentence.append(line.split())
            elif sentence:
                yield sentence
                sentence = []
    if sentence:
        yield sentence


def rival_whole(limit):
    """Text file to model, then tagging, with CRFsuite and its Python loop."""
    import pycrfsuite

    folder = data_directory() / "conll2000"
    start = time.perf_counter()
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={"c1": 0.0, "c2": L2 / 2.0}, verbose=False)
    for i, sentence in enumerate(plain_read(folder / "train.txt.gz")):
        if limit is None or i < limit:
            words, tags, labels = zip(*sentence, strict=True)
            trainer.append(chunking_features(words, tags), labels)
    with tempfile.TemporaryDirectory() as temporary:
        path = str(Path(temporary) / "model")
        trainer.train(path)
        train = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        start = time.perf_counter()
        tokens = 0
        for sentence in plain_read(folder / "test.txt.gz"):
            words, tags, _ = zip(*sentence, strict=True)
            tokens += len(tagger.tag(chunking_features(words, tags)))
        tag = time.perf_counter() - start
    return {"train": train, "tokens_per_second": tokens / tag, "tag": tag, "memory": memory}


def ours_whole(limit, threads):
    """The same with the command-line tool: processes, imports included."""
    folder = data_directory() / "conll2000"
    with tempfile.TemporaryDirectory() as temporary:
        source = folder / "train.txt.gz"
        if limit is not None:
            source = Path(temporary) / "train.txt"
            sentences = list(plain_read(folder / "train.txt.gz"))[:limit]
            source.write_text("\n\n".join("\n".join(" ".join(t) for t in s) for s in sentences) + "\n")
        model, out = Path(temporary) / "model", Path(temporary) / "out"
        command = [sys.executable, "-m", "partita"]
        options = ["--features", "chunking", "--l2", str(L2), "--n-jobs", str(threads), "-q"]
        start = time.perf_counter()
        subprocess.run([*command, "train", str(source), "-m", str(model), *options], check=True)
        train = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        start = time.perf_counter()
        test = str(folder / "test.txt.gz")
        subprocess.run([*command, "tag", "-m", str(model), test, "-o", str(out), "--n-jobs", str(threads)], check=True)
        process = time.perf_counter() - start
    return {"train": train, "tag_process": process, "memory": memory}


def ours_tagging(threads):
    """Tagging in a process that has the model: file to labels, warm."""
    folder = data_directory() / "conll2000"
    columns, label, kind = read("conll2000", "train")
    templates = Templates.builtin(kind)
    matrix, _ = templates.fit(columns)
    y = columns.sequences(label)
    data = SequenceData(matrix, lengths=np.diff(columns.offsets))
    model = ChainCRF(l2=L2, max_iter=20, n_jobs=threads)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data, y)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        test = read_columns(folder / "test.txt.gz")
        found = model.predict(SequenceData(templates.transform(test), lengths=np.diff(test.offsets)))
        times.append(time.perf_counter() - start)
    tokens = sum(map(len, found))
    return {"tag": min(times), "tokens_per_second": tokens / min(times)}


def child(arguments):
    """Run one part in a process of its own and return what it printed."""
    environment = dict(os.environ)
    out = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(arguments)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(out.stdout.splitlines()[-1])


def seconds_to(curve, objective):
    """Seconds at which a curve of (objective, seconds) first reaches an objective."""
    return next((s for value, s in curve if value <= objective), None)


def row(name, who, run, reached, ratio):
    """A line of the table of the race."""
    figures = [digits(reached), digits(run["evaluation"]), f"{run['quality']:.4f}", digits(ratio)]
    return [name, who, f"{run['objective']:.3f}", run["iterations"], *figures]


def whole_row(who, train, tag, command):
    """A line of the table from file to model and from file to labels."""
    figures = [digits(train["train"]), f"{train['memory']:.0f}", digits(tag["tag"]), f"{tag['tokens_per_second']:.0f}"]
    return [who, *figures, digits(command)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["conll2000", "conll2002_esp", "ud_english_ewt"])
    parser.add_argument("--limit", type=int, help="sequences to train on")
    parser.add_argument("--skip-whole", action="store_true", help="only the training race")
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--tol", type=float, default=1e-7)
    parser.add_argument("--child")
    options = parser.parse_args()
    if options.child:
        part, *rest = json.loads(options.child)
        print(json.dumps(globals()[part](*rest)))
        return
    print_load("start")
    results = {"machine": machine(), "race": {}, "whole": {}}
    header = [
        "data",
        "who",
        "objective",
        "iterations",
        "s to CRFsuite's objective",
        "s/evaluation",
        "quality",
        "times faster",
    ]
    rows = []
    for name in options.data:
        theirs = child(["rival", name, options.limit])
        runs = {k: child(["ours", name, options.limit, k, options.solver, options.tol, 1000]) for k in (1, 2)}
        results["race"][name] = {"crfsuite": theirs, "ours": runs}
        rows.append(row(name, "CRFsuite", theirs, theirs["seconds"], 1.0))
        for k, run in runs.items():
            reached = seconds_to(run["curve"], theirs["objective"])
            rows.append(row(name, f"ours, {k} threads", run, reached, theirs["seconds"] / reached if reached else None))
        print(markdown(header, rows), flush=True)
        write_results("chain_race", results)
    if not options.skip_whole:
        theirs = child(["rival_whole", options.limit])
        runs = {k: child(["ours_whole", options.limit, k]) for k in (1, 2)}
        tags = {k: child(["ours_tagging", k]) for k in (1, 2)}
        results["whole"] = {"crfsuite": theirs, "ours": runs, "tagging": tags}
        table = [whole_row("CRFsuite + Python loop", theirs, theirs, None)]
        table += [whole_row(f"partita, {k} threads", runs[k], tags[k], runs[k]["tag_process"]) for k in (1, 2)]
        header = ["CoNLL-2000", "file to model, s", "peak MB", "tagging, s", "tokens/s", "whole tag command, s"]
        print(markdown(header, table))
        write_results("chain_race", results)
    print_load("end")


if __name__ == "__main__":
    main()
