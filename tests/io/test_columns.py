from __future__ import annotations

import gzip
import io

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.io import columns as module, iter_columns, read_columns, read_conllu

TEXT = b"The DT O\ncat NN B\n\n \t\nGo VB O\n"


def rows(columns):
    """All columns, sequence by sequence."""
    parts = [columns.sequences(c) for c in range(columns.n_columns)]
    return [list(zip(*sequence, strict=True)) for sequence in zip(*parts, strict=True)]


def test_reads_sequences_and_codes():
    columns = read_columns(io.BytesIO(TEXT))
    assert columns.n_columns == 3
    assert (columns.n_tokens, columns.n_sequences) == (3, 2)
    assert columns.offsets.tolist() == [0, 2, 3]
    assert (columns.codes.dtype, columns.offsets.dtype) == (np.int32, np.int64)
    assert columns.sequences(0) == [["The", "cat"], ["Go"]]
    assert columns.values(-1).tolist() == ["O", "B", "O"]
    assert columns.vocabularies[2].tolist() == ["O", "B"]
    assert columns.line_numbers.tolist() == [1, 2, 5]
    assert columns.where(2) == "<stream>, line 5"


word = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=4)


def shaped(width):
    token = st.lists(word, min_size=width, max_size=width)
    return st.lists(st.lists(token, min_size=1, max_size=4), min_size=1, max_size=5)


sequences = st.integers(1, 3).flatmap(shaped)


@given(sequences, st.sampled_from([" ", "\t", "  \t "]), st.sampled_from(["\n", "\r\n"]), st.data())
def test_reads_what_was_written(data, glue, end, draw):
    blank = [draw.draw(st.lists(st.sampled_from(["", " ", "\t \t"]), min_size=1, max_size=3)) for _ in data]
    text = "".join(
        "".join(glue.join(token) + end for token in sequence) + "".join(line + end for line in lines)
        for sequence, lines in zip(data, blank, strict=True)
    )
    if draw.draw(st.booleans()):
        text = text.rstrip(" \t\r\n")
    expected = [[tuple(token) for token in sequence] for sequence in data]
    raw = text.encode()
    columns = read_columns(io.BytesIO(raw))
    assert rows(columns) == expected
    lines = raw.split(b"\n")
    for number, first in zip(columns.line_numbers.tolist(), columns.values(0), strict=True):
        assert lines[number - 1].decode().split()[0] == first
    if glue == "\t":
        assert rows(read_columns(io.BytesIO(raw), separator="\t")) == expected
    size = draw.draw(st.integers(1, 6))
    out = io.BytesIO()
    found = []
    for block in iter_columns(io.BytesIO(raw), size):
        found += rows(block.columns) if block.columns.n_tokens else []
        block.append_column([f"<{value}>" for value in block.columns.values(-1)] if block.columns.n_tokens else [], out)
    assert found == expected
    labelled = [[(*token, f"<{token[-1]}>") for token in sequence] for sequence in data]
    assert rows(read_columns(io.BytesIO(out.getvalue()))) == labelled
    assert out.getvalue().count(b"\n") == text.count("\n") + (not text.endswith("\n"))


def test_only_ascii_space_separates():
    columns = read_columns(io.BytesIO("a\u00a0b\u3000c X\n".encode()))
    assert columns.sequences(0) == [["a\u00a0b\u3000c"]]


def test_separator_keeps_spaces_and_empty_columns():
    columns = read_columns(io.BytesIO(b"New York\t\tB\n\nx\ty\tO\r\n"), separator="\t")
    assert rows(columns) == [[("New York", "", "B")], [("x", "y", "O")]]


def test_gzip_is_found_by_its_first_bytes(tmp_path):
    path = tmp_path / "plain.txt"
    path.write_bytes(gzip.compress(TEXT, mtime=0))
    assert rows(read_columns(path)) == rows(read_columns(io.BytesIO(TEXT)))
    assert rows(read_columns(io.BytesIO(gzip.compress(TEXT, mtime=0)))) == rows(read_columns(io.BytesIO(TEXT)))
    with open(path, "rb") as file:
        read_columns(file)
        assert not file.closed


def test_a_stream_of_the_caller_stays_open():
    stream = io.BytesIO(TEXT)
    read_columns(stream)
    assert not stream.closed


def test_chosen_columns():
    columns = read_columns(io.BytesIO(TEXT), columns=[-1, 0])
    assert rows(columns)[0] == [("O", "The"), ("B", "cat")]


def test_comments_do_not_end_a_sequence():
    text = b"# one\na X\n# two\nb Y\n\n# three\n"
    assert read_columns(io.BytesIO(text), comments="#").sequences(0) == [["a", "b"]]
    blocks = list(iter_columns(io.BytesIO(text), 1, comments="#"))
    assert [block.columns.n_tokens for block in blocks] == [2, 0]
    out = io.BytesIO()
    blocks[0].append_column(["1", "2"], out)
    blocks[1].append_column([], out)
    assert out.getvalue() == b"# one\na X 1\n# two\nb Y 2\n\n# three\n"


def test_comments_before_any_token_belong_to_the_first_block():
    blocks = list(iter_columns(io.BytesIO(b"# one\n\n# two\n\na X\n"), 1, comments="#"))
    assert [block.columns.line_numbers.tolist() for block in blocks] == [[5]]


def test_conllu():
    line = "{}\t{}\t_\tV\tVB\t_\t0\troot\t_\t_\n"
    text = "# text = du geht\n" + line.format("1-2", "du") + line.format("1", "de") + line.format("2", "le # x")
    text += line.format("2.1", "empty") + "\n" + line.format("1", "1-2") + "\n"
    columns = read_conllu(io.BytesIO(text.encode()), columns=("form", "xpos"))
    assert rows(columns) == [[("de", "VB"), ("le # x", "VB")], [("1-2", "VB")]]
    with pytest.raises(ValueError, match=r"columns must be names out of id, form.*'tag'"):
        read_conllu(io.BytesIO(b""), columns=["tag"])
    out = io.BytesIO()
    (block,) = iter_columns(io.BytesIO(text.encode()), **module.CONLLU)
    block.append_column(["p", "q", "r"], out)
    assert out.getvalue().decode().splitlines()[1:4] == [
        line.format("1-2", "du").strip(),
        line.format("1", "de").strip() + "\tp",
        line.format("2", "le # x").strip() + "\tq",
    ]


def test_output_keeps_blank_lines_and_line_endings():
    text = b"\r\na X\r\n \nb\tY  \n\n\nc Z"
    out = io.BytesIO()
    for block in iter_columns(io.BytesIO(text), 1):
        block.append_column(["1"] * block.columns.n_tokens, out)
    assert out.getvalue() == b"\r\na X 1\r\n \nb\tY\t1\n\n\nc Z 1\n"
    block = next(iter_columns(io.BytesIO(text)))
    with pytest.raises(ValueError, match="each of 3 tokens, got 1"):
        block.append_column(["1"], out)


def test_blocks_are_bounded_and_line_numbers_go_on(monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 7)
    text = b"".join(b"w%d T\nv T\n\n" % i for i in range(20))
    blocks = list(iter_columns(io.BytesIO(text), 6))
    assert [block.columns.n_tokens for block in blocks] == [4] * 10
    assert blocks[3].columns.line_numbers.tolist() == [19, 20, 22, 23]
    with pytest.raises(ValueError, match="line 62: 1 column, but line 1 has 2 columns"):
        list(iter_columns(io.BytesIO(text + b"a b\nc\n"), 6))


def test_other_encodings():
    text = "é x\nÃ y\n".encode("latin-1")
    columns = read_columns(io.BytesIO(text), encoding="latin-1")
    assert columns.sequences(0) == [["é", "Ã"]]
    out = io.BytesIO()
    next(iter_columns(io.BytesIO(text), encoding="latin-1")).append_column(["ü", "b"], out)
    assert out.getvalue() == "é x ü\nÃ y b\n".encode("latin-1")
    assert read_columns(io.BytesIO(b"\xef\xbb\xbfa x\n")).sequences(0) == [["a"]]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"a b c\n\nd e\n", {}, r"data\.txt, line 3: 2 columns, but line 1 has 3 columns"),
        (b"", {}, r"data\.txt is empty: it has no line with a token"),
        (b"\n \n# x\n", {"comments": "#"}, r"data\.txt is empty"),
        (b"a b\n\nc\xff d\n", {}, r"data\.txt, line 3: byte 0xff is not utf-8"),
        (b"a b\nc\0 d\n", {}, r"data\.txt, line 2: a NUL byte"),
        ("a b\n".encode("utf-16"), {}, r"data\.txt, line 1: a NUL byte.*UTF-16"),
        (b"a b\n", {"columns": [0, 2]}, r"data\.txt, line 1: column 2 was asked for, but there are 2 columns"),
        (b"a b\n", {"columns": [-3]}, r"column -3 was asked for"),
        (b"a b\n", {"encoding": "utf-16"}, "encoding must write ASCII as ASCII, got 'utf-16'"),
        (b"a b\n", {"encoding": "klingon"}, "encoding must be the name of a text encoding, got 'klingon'"),
        (b"a b\n", {"separator": "||"}, r"separator must be None or one character within a line, got '\|\|'"),
        (b"a b\n", {"comments": ""}, "comments must be None or"),
        (b"a b\n", {"skip": "("}, r"skip must be None or a regular expression, got '\('"),
        (gzip.compress(b"a b\n" * 9, mtime=0)[:-12], {}, r"data\.txt, after line \d+: the gzip data are damaged or cut off"),
        (gzip.compress(b"a b\n" * 9, mtime=0)[:12] + b"\0" * 9, {}, r"data\.txt, after line 0: the gzip data are damaged"),
    ],
)
def test_errors_name_file_and_line(tmp_path, content, options, message):
    path = tmp_path / "data.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_columns(path, **options)
    with pytest.raises(ValueError, match=message):
        list(iter_columns(path, 1, **options))


def test_wrong_uses():
    columns = read_columns(io.BytesIO(TEXT))
    with pytest.raises(ValueError, match="column 3 was asked for, but <stream> has 3 columns"):
        columns.values(3)
    with pytest.raises(ValueError, match="stream opened in binary mode, got StringIO"):
        read_columns(io.StringIO("a"))
    with pytest.raises(ValueError, match="tokens must be an integer >= 1, got 0"):
        iter_columns(io.BytesIO(TEXT), 0)


@pytest.mark.data
def test_public_files(data_dir):
    train = read_columns(data_dir / "conll2000" / "train.txt.gz")
    assert (train.n_tokens, train.n_sequences) == (211_727, 8_936)
    assert [len(words) for words in train.vocabularies[1:]] == [44, 22]
    dev = read_conllu(data_dir / "ud_english_ewt" / "en_ewt-ud-dev.conllu.gz")
    assert (dev.n_tokens, dev.n_sequences) == (25_147, 2_001)


@pytest.mark.parametrize(
    ("content", "separator", "expected"),
    [
        (b"a b\r\n\nc d", None, b"a b X 1\r\n\nc d Y 2\n"),
        (b"a\tb\n\nc d \n", None, b"a\tb\tX\t1\n\nc d Y 2\n"),
        (b"a|b\n\nc|\n", "|", b"a|b|X|1\n\nc||Y|2\n"),
    ],
)
def test_several_columns_are_added(content, separator, expected):
    block = next(iter_columns(io.BytesIO(content), separator=separator))
    lines = block.lines(["X", "Y"], ["1", "2"])
    assert b"\n".join([*lines, b""]) == expected
    assert [lines[row] for row in block.token_lines.tolist()] == [lines[0], lines[2]]
    with pytest.raises(ValueError, match="one entry for each of 2 tokens, got 1"):
        block.lines(["X", "Y"], ["1"])
