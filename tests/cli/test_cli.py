from __future__ import annotations

import gzip
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import partita
from partita import ChainCRF, ColumnTagger, SoftmaxRegression
from partita.chain import join_columns
from partita.cli.commands import main
from partita.features import Templates
from partita.io import read_columns
from partita.metrics import chunk_scores, token_accuracy
from partita.solvers.recorder import Recorder

ROOT = Path(__file__).resolve().parents[2]
SMALL = "the D x\ncat N y\n\na D x\ncat N y\nsat V y\n"


@pytest.fixture(scope="module")
def addresses():
    spec = importlib.util.spec_from_file_location("addresses", ROOT / "examples" / "addresses.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_addresses


def write(path, X, y=None, separator=" "):
    rows = (
        X
        if y is None
        else [[token + separator + label for token, label in zip(*pair, strict=True)] for pair in zip(X, y, strict=True)]
    )
    path.write_text("\n".join("".join(f"{row}\n" for row in sequence) for sequence in rows), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def trained(addresses, tmp_path_factory):
    """A folder with train, test (labels too), words (no labels), and a model."""
    folder = tmp_path_factory.mktemp("cli")
    write(folder / "train", *addresses(300, random_state=1))
    X, y = addresses(60, random_state=2)
    write(folder / "test", X, y)
    write(folder / "words", X)
    assert any("|" in sequence for sequence in X)
    assert main(["train", str(folder / "train"), "-m", str(folder / "model"), "--max-iter", "40", "-q"]) == 0
    return folder


@pytest.fixture
def small(tmp_path):
    (tmp_path / "small").write_text(SMALL)
    assert main(["train", str(tmp_path / "small"), "-m", str(tmp_path / "m"), "-q", "--l2", "0.1"]) == 0
    return tmp_path


def run(capsysbinary, *argv):
    capsysbinary.readouterr()
    status = main([str(arg) for arg in argv])
    out, err = capsysbinary.readouterr()
    return status, out.decode(), err.decode()


def fails(capsysbinary, *argv):
    """The one line that a failing command says."""
    status, out, err = run(capsysbinary, *argv)
    assert status == 2
    assert out == ""
    assert err.startswith("partita: error: ")
    assert err.count("\n") == 1
    return err


def test_train_tag_eval_dump(trained, capsysbinary):
    status, out, err = run(capsysbinary, "tag", "-m", trained / "model", trained / "test", "-o", trained / "tagged")
    assert (status, out, err) == (0, "", "")
    gold, tagged = read_columns(trained / "test"), read_columns(trained / "tagged")
    assert [tagged.sequences(c) for c in (0, 1)] == [gold.sequences(c) for c in (0, 1)]
    expected = chunk_scores(tagged.sequences(1), tagged.sequences(2))
    assert expected.f1 > 0.8
    assert run(capsysbinary, "eval", "-m", trained / "model", trained / "test") == (0, f"{expected}\n", "")
    assert run(capsysbinary, "eval", trained / "tagged") == (0, f"{expected}\n", "")
    strict = chunk_scores(tagged.sequences(1), tagged.sequences(2), "iob2")
    assert run(capsysbinary, "eval", trained / "tagged", "--scheme", "iob2")[1] == f"{strict}\n"
    _, out, _ = run(capsysbinary, "eval", trained / "tagged", "--tokens")
    assert f"tokens right: {expected.accuracy:.2%}" in out
    assert out.startswith("label")
    _, out, _ = run(capsysbinary, "dump", "-m", trained / "model", "--top", "3")
    tagger = ColumnTagger.load(trained / "model")
    rows = [line.split("\t") for line in out.splitlines() if not line.startswith("#")]
    moves = {(a, b): float(w) for kind, a, b, w in rows if kind == "transition"}
    assert moves == pytest.approx(tagger.model.transition_features_, rel=1e-5)
    for label in tagger.model.classes_:
        weights = {a: w for (a, of), w in tagger.model.state_features_.items() if of == label}
        top = [(a, float(w)) for kind, of, a, w in rows if kind == "state" and of == label]
        assert [abs(w) for _, w in top] == pytest.approx(sorted(map(abs, weights.values()))[:-4:-1], rel=1e-5)
        assert all(weights[a] == pytest.approx(w, rel=1e-5) for a, w in top)
    assert f"# labels: {' '.join(tagger.model.classes_)}\n" in out
    assert f"# partita {partita.__version__}: " in out
    _, one, _ = run(capsysbinary, "dump", "-m", trained / "model", "--label", "B-CITY")
    weights = [line for line in one.splitlines() if line.startswith("state")]
    assert len(weights) == sum(of == "B-CITY" for _, of in tagger.model.state_features_)
    assert all(line.split("\t")[1] == "B-CITY" for line in weights)


def test_the_model_is_the_one_that_python_trains(trained):
    tagger = ColumnTagger.load(trained / "model")
    columns = read_columns(trained / "train")
    data = partita.SequenceData.from_columns(columns, Templates.builtin("word"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", partita.ConvergenceWarning)
        model = ChainCRF(max_iter=40).fit(data)
    assert np.allclose(tagger.model.parameters_, model.parameters_, rtol=0, atol=1e-12)
    assert tagger.predict(read_columns(trained / "test")) == tagger.predict(read_columns(trained / "words"))


def test_progress_and_summary_go_to_stderr(small, capsysbinary):
    status, out, err = run(capsysbinary, "train", small / "small", "-m", small / "n", "--dev", small / "small")
    assert status == 0
    lines = err.splitlines()
    assert lines[0].startswith("auto: iteration 0, objective")
    assert lines[-3].startswith("5 tokens in 2 sequences, ")
    assert "2 labels" in lines[-3]
    assert lines[-2].startswith("objective ")
    assert lines[-2].endswith("is below the tolerance")
    assert lines[-1].startswith("seconds: starting ")
    assert "features" in lines[-1]
    assert "tokens right: 100.00%" in out
    _, _, quiet = run(capsysbinary, "train", small / "small", "-m", small / "n", "-q")
    assert quiet == ""
    _, _, every = run(capsysbinary, "train", small / "small", "-m", small / "n", "-v")
    assert every.count("iteration ") == ColumnTagger.load(small / "n").model.n_iter_ + 1


def test_standard_input_and_output_in_blocks(trained, capsysbinary, monkeypatch):
    _, expected, _ = run(capsysbinary, "tag", "-m", trained / "model", trained / "words")
    content = (trained / "words").read_bytes()
    from partita.io import columns as files

    sizes = []
    original = files.iter_columns

    def blocks(source, **options):
        for block in original(source, 50, **options):
            sizes.append(block.columns.n_tokens)
            yield block

    monkeypatch.setattr(files, "iter_columns", blocks)
    for data in (content, gzip.compress(content)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert run(capsysbinary, "tag", "-m", trained / "model")[1] == expected
    assert max(sizes) < 100 < sum(sizes)
    read = read_columns(io.BytesIO(expected.encode()))
    assert read.sequences(0) == read_columns(trained / "words").sequences(0)


def test_marginals_and_kbest(trained, capsysbinary):
    tagger = ColumnTagger.load(trained / "model")
    words = read_columns(trained / "words")
    data = tagger.sequences(words)
    marginals = tagger.model.predict_marginals(data)
    best = tagger.model.predict_kbest(data, 3)

    _, out, _ = run(capsysbinary, "tag", "-m", trained / "model", trained / "words", "--marginals")
    tagged = read_columns(io.BytesIO(out.encode()))
    assert tagged.sequences(1) == tagger.predict(words)
    for i, labels in enumerate(tagged.sequences(1)):
        expected = [f"{p[label]:.6f}" for p, label in zip(marginals[i], labels, strict=True)]
        assert tagged.sequences(2)[i] == expected

    _, out, _ = run(capsysbinary, "tag", "-m", trained / "model", trained / "words", "--kbest", "3")
    ranks = [line for line in out.splitlines() if line.startswith("# ")]
    assert ranks == [f"# {k} {np.exp(value):.6f}" for entries in best for k, (_, value) in enumerate(entries)]
    read = read_columns(io.BytesIO(out.encode()), comments="# ")
    assert read.sequences(1) == [labels for entries in best for labels, _ in entries]
    assert read.sequences(0) == [s for s, entries in zip(words.sequences(0), best, strict=True) for _ in entries]


def test_fewer_labellings_than_asked_for(tmp_path, capsysbinary):
    (tmp_path / "d").write_text("a X\n\na X\nb Y\n")
    main(["train", str(tmp_path / "d"), "-m", str(tmp_path / "m"), "-q"])
    _, out, _ = run(capsysbinary, "tag", "-m", tmp_path / "m", tmp_path / "d", "--kbest", "9")
    assert [line.split()[1] for line in out.splitlines() if line.startswith("#")] == ["0", "1", "0", "1", "2", "3"]


@pytest.mark.parametrize("label", ["-1", "0", "1"])
def test_label_column_anywhere_present_or_not(addresses, tmp_path, capsysbinary, label):
    """The same model, wherever the label is: templates count columns without it."""
    X, y = addresses(40)
    rows = [list(zip(a, map(str.lower, a), b, strict=True)) for a, b in zip(X, y, strict=True)]
    order = {"-1": (0, 1, 2), "0": (2, 0, 1), "1": (0, 2, 1)}[label]
    for name, keep in (("full", order), ("bare", [c for c in order if c != 2])):
        write(tmp_path / name, [[" ".join(row[c] for c in keep) for row in sequence] for sequence in rows])
    (tmp_path / "t").write_text("U0:%x[0,0]\nU1:%suffix2[-1,1]\nB\n")
    options = ["--label-column", label, "--template", str(tmp_path / "t"), "-q", "--max-iter", "15"]
    assert main(["train", str(tmp_path / "full"), "-m", str(tmp_path / "m"), *options]) == 0
    tagger = ColumnTagger.load(tmp_path / "m")
    assert {name[:3] for name in tagger.model.attributes_} == {"U0:", "U1:"}
    assert "U0:" + X[0][0] in tagger.model.attributes_
    outputs = [run(capsysbinary, "tag", "-m", tmp_path / "m", tmp_path / name)[1] for name in ("full", "bare")]
    labels = [read_columns(io.BytesIO(out.encode())).sequences(-1) for out in outputs]
    assert labels[0] == labels[1]
    assert token_accuracy(y, labels[0]) > 0.8
    words = write(tmp_path / "words", [[f"junk {row[0]} junk {row[1]}" for row in sequence] for sequence in rows])
    _, out, _ = run(capsysbinary, "tag", "-m", tmp_path / "m", words, "--columns", "1,-1")
    assert read_columns(io.BytesIO(out.encode())).sequences(-1) == labels[0]


def test_conllu_separator_and_encoding(tmp_path, capsysbinary):
    line = "{0}\t{1}\t_\t{2}\t_\t_\t_\t_\t_\t_\n"
    text = (
        "# text\n" + "1-2\tdü\t_\t_\t_\t_\t_\t_\t_\t_\n" + line.format(1, "dü", "DET") + line.format(2, "cat", "NOUN") + "\n"
    )
    (tmp_path / "d").write_text(text, encoding="utf-8")
    assert main(["train", str(tmp_path / "d"), "-m", str(tmp_path / "m"), "--conllu", "-q"]) == 0
    _, out, _ = run(capsysbinary, "tag", "-m", tmp_path / "m", tmp_path / "d")
    assert [row.split("\t")[10:] for row in out.split("\n")] == [[], [], ["DET"], ["NOUN"], [], []]
    (tmp_path / "l").write_bytes("dü;D\ncat;N\n".encode("latin-1"))
    options = ["--separator", ";", "--encoding", "latin-1", "-q"]
    assert main(["train", str(tmp_path / "l"), "-m", str(tmp_path / "m"), *options]) == 0
    capsysbinary.readouterr()
    assert main(["tag", "-m", str(tmp_path / "m"), str(tmp_path / "l")]) == 0
    assert capsysbinary.readouterr().out == "dü;D;D\ncat;N;N\n".encode("latin-1")
    assert "line 1: byte 0xfc is not utf-8" in fails(capsysbinary, "train", tmp_path / "l", "-m", tmp_path / "n")


def test_several_files_gzip_and_options_reach_the_model(trained, tmp_path, capsysbinary):
    content = (trained / "train").read_bytes()
    cut = content.index(b"\n\n", len(content) // 2) + 2
    (tmp_path / "a").write_bytes(content[:cut])
    (tmp_path / "b").write_bytes(gzip.compress(content[cut:]))
    options = [
        "-q",
        "--max-iter",
        "5",
        "--l2",
        "0.5",
        "--forbid",
        "iob2",
        "--solver",
        "lbfgs",
        "--start-end",
        "--likelihood",
        "pseudo",
        "--n-jobs",
        "1",
    ]
    for name, files in (("m", ["a", "b"]), ("n", [trained / "train"])):
        assert main(["train", *[str(tmp_path / file) for file in files], "-m", str(tmp_path / name), *options]) == 0
    both, one = (ColumnTagger.load(tmp_path / name).model for name in ("m", "n"))
    assert both.attributes_ == one.attributes_
    assert np.array_equal(both.parameters_, one.parameters_)
    assert (one.l2, one.forbidden, one.solver, one.start_end, one.max_iter) == (0.5, "iob2", "lbfgs", True, 5)
    assert one.likelihood == "pseudo"
    assert one.beta_ == {1: 1.0}
    (tmp_path / "b").write_text("x\n")
    message = fails(capsysbinary, "train", tmp_path / "a", tmp_path / "b", "-m", tmp_path / "m")
    assert f"{tmp_path / 'b'}, line 1: 1 columns, but {tmp_path / 'a'} has 2" in message


def test_join_columns_keeps_sequences(trained):
    a, b = read_columns(trained / "train"), read_columns(trained / "test")
    both = join_columns([a, b, a])
    for c in (0, 1):
        assert both.sequences(c) == a.sequences(c) + b.sequences(c) + a.sequences(c)
    assert both.n_sequences == 2 * a.n_sequences + b.n_sequences


def test_errors_name_the_right_one_of_several_files(tmp_path, capsysbinary):
    (tmp_path / "a").write_text("a B-X\nb I-X\n")
    (tmp_path / "b").write_text("a O\nb I-X\n")
    options = ["-m", tmp_path / "m", "-q", "--forbid", "iob2"]
    expected = f"error: forbidden: 'O' is followed by 'I-X' at {tmp_path / 'b'}, line 2\n"
    assert expected in fails(capsysbinary, "train", tmp_path / "a", tmp_path / "b", *options)
    (tmp_path / "a").write_text("a O\nb B-X\nc I-X\n")
    assert expected in fails(capsysbinary, "train", tmp_path / "a", "--dev", tmp_path / "b", "--early-stop", *options)


def test_templates_and_model_hash_alike():
    columns = read_columns(io.BytesIO(SMALL.encode()))
    for templates, model in ((64, None), (None, 64)):
        tagger = ColumnTagger(Templates.builtin("word", hashing=templates), ChainCRF(hashing=model))
        with pytest.raises(ValueError, match=f"the same hashing, got {templates} and {model}"):
            tagger.fit(columns)


def test_hashing_keeps_no_names(trained, tmp_path, capsysbinary):
    options = ["--hashing", "4096", "-q", "--max-iter", "30", "--all-transitions"]
    assert main(["train", str(trained / "train"), "-m", str(tmp_path / "m"), *options]) == 0
    tagger = ColumnTagger.load(tmp_path / "m")
    assert tagger.model.n_features_in_ == 4096
    assert len(tagger.model.transition_features_) == len(tagger.model.classes_) ** 2
    _, out, _ = run(capsysbinary, "eval", "-m", tmp_path / "m", trained / "test")
    assert float(out.split("FB1:")[1].split()[0]) > 75
    assert run(capsysbinary, "dump", "-m", tmp_path / "m", "--top", "1")[0] == 0


def test_early_stopping(trained, tmp_path, capsysbinary):
    command = ["train", trained / "train", "-m", tmp_path / "m", "--l2", "0.01", "--max-iter", "12"]
    assert run(capsysbinary, *command, "--dev", trained / "test", "--early-stop")[0] == 0
    model = ColumnTagger.load(tmp_path / "m").model
    assert len(model.dev_scores_) == model.n_iter_ + 1
    assert "give --dev FILE" in fails(capsysbinary, *command, "--early-stop")
    (tmp_path / "d").write_text("x O\ny B-STAR\n")
    message = fails(capsysbinary, *command, "--dev", tmp_path / "d", "--early-stop")
    assert f"{tmp_path / 'd'}, line 2: label 'B-STAR' is unknown" in message


def test_unknown_label_at_eval(trained, tmp_path, capsysbinary):
    (tmp_path / "d").write_text("x O\n\n\n| B-STAR\ny O\n")
    message = fails(capsysbinary, "eval", "-m", trained / "model", tmp_path / "d")
    assert f"{tmp_path / 'd'}, line 4: label 'B-STAR' is unknown to the model" in message
    status, out, err = run(capsysbinary, "eval", "-m", trained / "model", tmp_path / "d", "--allow-unknown")
    assert status == 0
    assert out.startswith("processed 3 tokens with 1 phrases")
    assert err.startswith(f"partita: warning: {tmp_path / 'd'}, line 4")
    _, out, _ = run(capsysbinary, "tag", "-m", trained / "model", tmp_path / "d")
    assert out.count("\n") == 5


TRAIN_ERRORS = {
    "ragged": ("a X\nb Y Z\n", [], "line 2: 3 columns, but line 1 has 2 columns"),
    "empty": ("", [], "is empty"),
    "blank": ("\n\n", [], "is empty"),
    "label column": ("a X\n", ["--label-column", "2"], "--label-column 2: column 2 was asked for, but"),
    "no such name": ("a X\n", ["--label-column", "upos"], "--label-column upos: a column must be a number, got 'upos'"),
    "feature column": ("a X\n", ["--columns", "0,7"], "--columns 0,7: column 7 was asked for, but"),
    "no number": ("a X\n", ["--columns", ""], "--columns : a column must be a number, got ''"),
    "one column": ("a\nb\n", [], "line 1: template 'w[-1]=%x[-1,0]' asks for column 0, but the highest is -1"),
    "no tag": (
        "a X\n",
        ["--features", "chunking"],
        "line 1: template 'pos[-2]=%x[-2,1]' asks for column 1, but the highest is 0",
    ),
    "label as feature": ("a X\n", ["--columns", "0,1"], "columns must not hold the column of the labels"),
    "l2": ("a X\n", ["--l2", "-1"], "l2 must"),
    "solver": ("a X\n", ["--solver", "magic"], "magic"),
    "separator": ("a X\n", ["--separator", "ab"], "separator must"),
    "encoding": ("a X\n", ["--encoding", "klingon"], "encoding must be the name of a text encoding, got 'klingon'"),
    "NUL": ("a\0b X\n", [], "line 1: a NUL byte"),
    "forbidden": ("a I-X\nb O\n", ["--forbid", "iob2"], "forbidden: 'I-X' stands first, at "),
    "no chunk": ("a B-X\n\nb O\nc I-X\n", ["--forbid", "iob2"], "d, line 4"),
}


@pytest.mark.parametrize("case", TRAIN_ERRORS)
def test_bad_input_to_train(case, tmp_path, capsysbinary):
    content, options, expected = TRAIN_ERRORS[case]
    (tmp_path / "d").write_text(content)
    (tmp_path / "m").write_text("old")
    assert expected in fails(capsysbinary, "train", tmp_path / "d", "-m", tmp_path / "m", "-q", *options)
    assert (tmp_path / "m").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["d", "m"]


def test_bad_templates(tmp_path, capsysbinary):
    (tmp_path / "d").write_text("a X\n")
    command = ["train", tmp_path / "d", "-m", tmp_path / "m", "--template", tmp_path / "t"]
    assert f"{tmp_path / 't'}: No such file" in fails(capsysbinary, *command)
    for content, expected in (
        (b"U0:%x[0,0]\nQ\n", "template line 2"),
        (b"\xff", "can't decode"),
        (b"", "at least one line"),
    ):
        (tmp_path / "t").write_bytes(content)
        message = fails(capsysbinary, *command)
        assert f"{tmp_path / 't'}: " in message
        assert expected in message
    (tmp_path / "t").write_text("U0:%x[0,0]/%x[1,4]\n")
    assert "line 1: template 'U0:%x[0,0]/%x[1,4]' asks for column 4" in fails(capsysbinary, *command)
    (tmp_path / "t").write_text("U0:%x[0,0]\n")
    assert "no B line" in run(capsysbinary, *command, "-q")[2]


def test_bad_input_to_tag_and_eval(small, capsysbinary):
    model = ["-m", small / "m"]
    for content, expected in (
        ("a\n", "line 1: 1 columns, but 3 or 2 expected: the model was trained on 3, with the label in column 2"),
        ("a b c d\n", "line 1: 4 columns, but 3 or 2 expected"),
        ("a b\nc d\n\ne\n", "line 4: 1 column, but line 1 has 2 columns"),
        ("", "is empty"),
    ):
        (small / "d").write_text(content)
        (small / "out").write_text("old")
        assert f"{small / 'd'}" in (message := fails(capsysbinary, "tag", *model, small / "d", "-o", small / "out"))
        assert expected in message
        assert (small / "out").read_text() == "old"
    (small / "d").write_text("a b\n")
    assert "line 1: 2 columns, but 3 expected" in fails(capsysbinary, "eval", *model, small / "d")
    assert "No such file" in fails(capsysbinary, "tag", *model, small / "nowhere")
    assert "cannot be written" in fails(capsysbinary, "tag", *model, small / "small", "-o", small / "no" / "out")
    assert "at least 1" in fails(capsysbinary, "tag", *model, small / "small", "--kbest", "0")
    assert "the model knows its own" in fails(capsysbinary, "eval", *model, small / "small", "--label-column", "0")
    (small / "d").write_text("a\n")
    assert "--label-column -2: column -2 was asked for" in fails(capsysbinary, "eval", small / "d")
    assert "--columns 4: column 4 was asked for" in fails(capsysbinary, "tag", *model, small / "d", "--columns", "4")
    assert "does not know" in fails(capsysbinary, "eval", small / "small", "--scheme", "iob2")
    assert "no label 'Q'; its labels are x, y" in fails(capsysbinary, "dump", *model, "--label", "Q")
    assert sorted(os.listdir(small)) == ["d", "m", "out", "small"]


@pytest.mark.parametrize("command", ["tag", "eval", "dump"])
def test_files_that_are_no_models(command, small, capsysbinary):
    rest = [] if command == "dump" else [small / "small"]
    assert "not a Partita model file" in fails(capsysbinary, command, "-m", small / "small", *rest)
    assert "No such file" in fails(capsysbinary, command, "-m", small / "nowhere", *rest)
    assert "Is a directory" in fails(capsysbinary, command, "-m", small, *rest)
    SoftmaxRegression().save(small / "s")
    assert "holds a SoftmaxRegression without templates" in fails(capsysbinary, command, "-m", small / "s", *rest)
    with zipfile.ZipFile(small / "m") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(content["header.json"])
    for change in ({"version": 2}, {"values": header["values"] | {"templates": {}}}):
        with zipfile.ZipFile(small / "b", "w") as archive:
            for name, data in (content | {"header.json": json.dumps(header | change).encode()}).items():
                archive.writestr(name, data)
        expected = "format version 2" if "version" in change else "damaged"
        assert expected in fails(capsysbinary, command, "-m", small / "b", *rest)


def test_unwritable_models_are_noticed_before_training(small, capsysbinary, monkeypatch):
    monkeypatch.setattr(ChainCRF, "fit", lambda *args, **kwargs: pytest.fail("trained"))
    assert "there is no folder" in fails(capsysbinary, "train", small / "small", "-m", small / "no" / "m")
    assert "it is a folder" in fails(capsysbinary, "train", small / "small", "-m", small)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failing_save_keeps_the_old_model(small, capsysbinary, monkeypatch, error):
    before = (small / "m").read_bytes()

    def fail(*args):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    status, _, err = run(capsysbinary, "train", small / "small", "-m", small / "m", "-q", "--l2", "5")
    assert status == (130 if isinstance(error, KeyboardInterrupt) else 2)
    assert "interrupted" in err if status == 130 else "No space left" in err
    status, _, _ = run(capsysbinary, "tag", small / "small", "-m", small / "m", "-o", small / "m2")
    assert (small / "m").read_bytes() == before
    assert sorted(os.listdir(small)) == ["m", "small"]


def test_an_interrupted_training_keeps_the_best_so_far(trained, tmp_path, capsysbinary, monkeypatch):
    original = Recorder.add

    def add(self, point):
        if len(self.rows) == 5:
            raise KeyboardInterrupt
        return original(self, point)

    monkeypatch.setattr(Recorder, "add", add)
    status, _, err = run(capsysbinary, "train", trained / "train", "-m", tmp_path / "m", "-q", "--solver", "lbfgs")
    assert (status, err) == (130, f"partita: interrupted; the best weights so far are in {tmp_path / 'm'}\n")
    model = ColumnTagger.load(tmp_path / "m").model
    assert model.status_ is partita.Status.INTERRUPTED
    assert model.n_iter_ == 4
    assert np.any(model.parameters_)


def test_an_interrupt_elsewhere_writes_nothing(trained, tmp_path, capsysbinary, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(ChainCRF, "predict", interrupt)
    result = run(capsysbinary, "tag", "-m", trained / "model", trained / "test", "-o", tmp_path / "out")
    assert result == (130, "", "partita: interrupted\n")
    assert os.listdir(tmp_path) == []


def test_errors_of_the_program_are_not_hidden(small, monkeypatch, capsysbinary):
    raised = [partita.CapabilityError("choose another solver"), TypeError("a bug")]

    def fail(*args, **kwargs):
        raise raised.pop(0)

    monkeypatch.setattr(ChainCRF, "predict", fail)
    assert "choose another solver" in fails(capsysbinary, "tag", "-m", small / "m", small / "small")
    with pytest.raises(TypeError, match="a bug"):
        main(["tag", "-m", str(small / "m"), str(small / "small")])


def test_warnings_are_one_line(small, monkeypatch, capsysbinary):
    original = ChainCRF.predict

    def predict(self, X):
        warnings.warn("mind\nthe gap", UserWarning, stacklevel=2)
        return original(self, X)

    monkeypatch.setattr(ChainCRF, "predict", predict)
    status, out, err = run(capsysbinary, "tag", "-m", small / "m", small / "small")
    assert (status, err) == (0, "partita: warning: mind the gap\n")
    assert out.count("\n") == 6


def test_a_model_in_use_survives_its_replacement(small):
    tagger = ColumnTagger.load(small / "m")
    columns = read_columns(small / "small")
    before = tagger.predict(columns)
    (small / "other").write_text("the D y\ncat N x\n")
    assert main(["train", str(small / "other"), "-m", str(small / "m"), "-q"]) == 0
    assert tagger.predict(columns) == before != ColumnTagger.load(small / "m").predict(columns)


def test_python_can_use_the_file(small):
    tagger = partita.load(small / "m")
    assert isinstance(tagger, ColumnTagger)
    with pytest.raises(partita.ModelFileError, match="holds a ColumnTagger, not a ChainCRF"):
        ChainCRF.load(small / "m")
    tagger.save(small / "n")
    assert ColumnTagger.load(small / "n").summary_ == tagger.summary_


def test_attributes_without_weights_are_dropped(trained, tmp_path):
    options = ["-q", "--min-frequency", "5"]
    assert main(["train", str(trained / "train"), "-m", str(tmp_path / "m"), *options]) == 0
    sparse, full = ColumnTagger.load(tmp_path / "m"), ColumnTagger.load(trained / "model")
    assert sparse.model.n_features_in_ < full.model.n_features_in_ / 2
    assert sparse.templates.attributes_ == sparse.model.attributes_
    columns = read_columns(trained / "test")
    templates = Templates.builtin("word")
    data = partita.SequenceData.from_columns(read_columns(trained / "train"), templates)
    untrimmed = ChainCRF(min_frequency=5).fit(data)
    new = partita.SequenceData.from_columns(columns, templates, fit=False)
    assert sparse.predict(columns) == untrimmed.predict(new)


@pytest.mark.parametrize("argv", [[], ["sing"], ["train", "x"], ["tag", "x"], ["train", "x", "-m", "m", "--l2", "much"]])
def test_bad_usage(argv, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    assert stopped.value.code == 2
    assert "usage: partita" in capsys.readouterr().err


def process(*argv, **options):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **options
    )


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom partita.cli.commands import main\n"
        "try:\n    main(['train', '--help'])\nexcept SystemExit:\n    pass\n"
        "assert not {'numpy', 'numba', 'scipy', 'sklearn'} & set(sys.modules)\n"
    )
    running = process("-c", code)
    out, err = running.communicate()
    assert (running.returncode, err) == (0, b"")
    assert b"--label-column" in out


def test_a_closed_pipe_is_quiet(trained, tmp_path):
    content = (trained / "words").read_bytes() + b"\n"
    (tmp_path / "many").write_bytes(content * (1 + 400_000 // len(content)))
    running = process("-m", "partita", "tag", "-m", str(trained / "model"), str(tmp_path / "many"))
    running.stdout.read(10)
    running.stdout.close()
    assert running.stderr.read() == b""
    assert running.wait() == 141


def test_ctrl_c_in_a_process(trained, tmp_path):
    (tmp_path / "many").write_bytes(((trained / "train").read_bytes() + b"\n") * 50)  # too many to be done at once
    command = ["train", str(tmp_path / "many"), "-m", str(tmp_path / "m"), "--tol", "0", "--max-iter", "1000000", "-v"]

    def heed() -> None:  # a shell in the background ignores interrupts, and so would its children
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    running = process("-m", "partita", *command, "--solver", "steepest", preexec_fn=heed)
    for line in running.stderr:
        if b"iteration 3," in line:
            break
    running.send_signal(signal.SIGINT)
    assert running.stderr.read().decode().endswith(f"interrupted; the best weights so far are in {tmp_path / 'm'}\n")
    assert running.wait() == 130
    assert ColumnTagger.load(tmp_path / "m").model.n_iter_ >= 3


@pytest.mark.parametrize(
    ("arguments", "closed", "message"),
    [
        (["tag", "train", "-m", "m"], "stdout", "standard output is closed"),
        (["tag", "-m", "m"], "stdin", "standard input is closed"),
        (["eval", "train", "-m", "m"], "stdout", "standard output is closed"),
        (["eval", "-", "-m", "m"], "stdin", "standard input is closed"),
        (["dump", "-m", "m"], "stdout", "standard output is closed"),
        (["train", "-", "-m", "new"], "stdin", "standard input is closed"),
        (["train", "train", "-m", "new", "--dev", "train"], "stdout", "standard output is closed"),
        (["infer", "g.uai"], "stdout", "standard output is closed"),
    ],
)
def test_a_closed_stream_is_a_sentence(trained, tmp_path, monkeypatch, capsys, arguments, closed, message):
    """Python has None for a stream that was closed before it began."""
    (tmp_path / "train").write_text(SMALL)
    (tmp_path / "g.uai").write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n")
    (tmp_path / "m").write_bytes((trained / "model").read_bytes())
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(sys, closed, None)
        assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


class Full(io.StringIO):
    """A stream that takes nothing."""

    def write(self, text):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("stderr", [None, Full()], ids=["closed", "full"])
def test_training_goes_on_when_nobody_hears_it(tmp_path, monkeypatch, stderr):
    (tmp_path / "train").write_text(SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        assert main(["train", str(tmp_path / "train"), "-m", str(tmp_path / "m"), "-v"]) == 0
    assert isinstance(partita.load(tmp_path / "m"), ColumnTagger)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")
def test_a_full_standard_output_is_a_sentence(trained, monkeypatch, capsys):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["dump", "-m", str(trained / "model")]) == 2
    assert "No space left on device" in capsys.readouterr().err
