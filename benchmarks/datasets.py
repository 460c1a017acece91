"""The data sets of the benchmarks: `load("wine")` gives a `Problem`."""

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn import datasets as sklearn_datasets

Matrix = np.ndarray | sparse.csr_matrix


@dataclass(frozen=True)
class Problem:
    """A classification problem: `X` is a dense float64 array or CSR with sorted int32 indices."""

    name: str
    X: Matrix
    y: np.ndarray
    note: str

    @property
    def n_classes(self) -> int:
        """Number of distinct labels."""
        return len(np.unique(self.y))

    @property
    def n_parameters(self) -> int:
        """Free parameters with intercepts: one vector for two classes, one per class for more."""
        vectors = 1 if self.n_classes == 2 else self.n_classes
        return vectors * (self.X.shape[1] + 1)


def data_directory() -> Path:
    """Find the data: `$PARTITA_DATA`, then `../shared/data` beside the repository."""
    named = os.environ.get("PARTITA_DATA")
    path = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not path.is_dir():
        raise FileNotFoundError(
            f"no data directory at {path}; set the environment variable PARTITA_DATA to the folder "
            "that holds adult/, fashion_mnist/, libsvm/, srbct/, ssl_secstr/, ssl_text/ and uci/"
        )
    return path


def csr(X: sparse.spmatrix | sparse.sparray) -> sparse.csr_matrix:
    """Return `X` as float64 CSR with sorted int32 indices and no duplicates."""
    X = sparse.csr_matrix(X, dtype=np.float64)
    X.sum_duplicates()
    X.sort_indices()
    X.indices = X.indices.astype(np.int32, copy=False)
    X.indptr = X.indptr.astype(np.int32, copy=False)
    return X


def standardize(X: np.ndarray) -> np.ndarray:
    """Shift and scale the columns to mean 0 and variance 1; constant columns become 0."""
    X = np.asarray(X, dtype=np.float64)
    scale = X.std(axis=0)
    scale[scale == 0.0] = 1.0
    return np.ascontiguousarray((X - X.mean(axis=0)) / scale)


def _one_hot(columns: list[np.ndarray]) -> sparse.csr_matrix:
    """One indicator column per value of each of the given columns."""
    blocks = []
    for column in columns:
        values, code = np.unique(column, return_inverse=True)
        rows = np.arange(len(code))
        blocks.append(sparse.csr_matrix((np.ones(len(code)), (rows, code)), shape=(len(code), len(values))))
    return csr(sparse.hstack(blocks))


def _wine() -> Problem:
    X, y = sklearn_datasets.load_wine(return_X_y=True)
    return Problem("wine", standardize(X), y, "scikit-learn, standardised")


def _breast_cancer() -> Problem:
    X, y = sklearn_datasets.load_breast_cancer(return_X_y=True)
    return Problem("breast_cancer", standardize(X), y, "scikit-learn, standardised")


def _digits() -> Problem:
    X, y = sklearn_datasets.load_digits(return_X_y=True)
    return Problem("digits", np.ascontiguousarray(X / 16.0), y, "scikit-learn, pixels / 16")


def _adult() -> Problem:
    with gzip.open(data_directory() / "adult" / "adult-train.csv.gz", "rt") as file:
        rows = [line.strip().split(", ") for line in file if line.strip()]
    *columns, y = (np.array(column) for column in zip(*rows, strict=True))
    numeric = [0, 2, 4, 10, 11, 12]
    numbers = standardize(np.column_stack([columns[j].astype(np.float64) for j in numeric]))
    categories = _one_hot([column for j, column in enumerate(columns) if j not in numeric])
    X = csr(sparse.hstack([sparse.csr_matrix(numbers), categories]))
    note = "train part, 8 columns one-hot ('?' is a category), 6 standardised"
    return Problem("adult", X, (y == ">50K").astype(np.int64), note)


def _svmlight(name: str) -> Problem:
    path = data_directory() / "libsvm" / f"{name}.gz"
    X, y = sklearn_datasets.load_svmlight_file(str(path), dtype=np.float64)
    return Problem(name, csr(X), y.astype(np.int64), "LIBSVM collection")


def _secstr() -> Problem:
    with np.load(data_directory() / "ssl_secstr" / "secstr.npz") as file:
        codes, y = file["T"], file["y"]
    rows, positions = codes.shape
    indices = (codes.astype(np.int32) + 21 * np.arange(positions, dtype=np.int32)).ravel()
    indptr = np.arange(0, rows * positions + 1, positions, dtype=np.int32)
    X = sparse.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(rows, 21 * positions))
    return Problem("secstr", csr(X), y.ravel().astype(np.int64), "21 categories at 15 positions, one-hot")


def _text() -> Problem:
    with np.load(data_directory() / "ssl_text" / "text.npz") as file:
        X = sparse.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        y = file["y"].ravel().astype(np.int64)
    return Problem("text", csr(X), y, "values as published")


def _srbct() -> Problem:
    folder = data_directory() / "srbct"

    def read(part: str) -> np.ndarray:
        return np.loadtxt(folder / f"Khan_{part}.csv.gz", delimiter=",", skiprows=1)

    X = np.vstack([read("xtrain"), read("xtest")])
    y = np.concatenate([read("ytrain"), read("ytest")]).astype(np.int64)
    return Problem("srbct", standardize(X), y, "train + test, standardised")


def _fashion_mnist() -> Problem:
    X, y = idx("fashion_mnist", "train")
    return Problem("fashion_mnist", X, y, "train part, pixels / 255")


def idx(folder: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Pixels / 255 and labels of an IDX pair."""
    path = data_directory() / folder
    with gzip.open(path / f"{part}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), dtype=np.uint8, offset=16)
    with gzip.open(path / f"{part}-labels-idx1-ubyte.gz") as file:
        y = np.frombuffer(file.read(), dtype=np.uint8, offset=8).astype(np.int64)
    return pixels.reshape(len(y), -1) / 255.0, y


def _kmnist() -> Problem:
    X, y = idx("kmnist_test", "t10k")
    return Problem("kmnist", X, y, "test part, pixels / 255")


def _adult14() -> Problem:
    parts = []
    for part in ("train", "test"):
        with gzip.open(data_directory() / "adult" / f"adult-{part}.csv.gz", "rt") as file:
            parts += [line.strip().rstrip(".").split(", ") for line in file if line.count(",") == 14]
    *columns, y = (np.array(column) for column in zip(*parts, strict=True))
    numeric = {0, 2, 4, 10, 11, 12}
    codes = [c.astype(np.float64) if j in numeric else np.unique(c, return_inverse=True)[1] for j, c in enumerate(columns)]
    note = "train + test, 14 columns as in the stochastic paper: categories by number, standardised"
    return Problem("adult14", standardize(np.column_stack(codes)), (y == ">50K").astype(np.int64), note)


def _draw_labels(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw one label per row from the softmax of `scores` (the Gumbel trick)."""
    return np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


def _dense_20k() -> Problem:
    rows, columns, classes = 20_000, 200, 5
    rng = np.random.default_rng(20)
    mixing = np.eye(columns) + 0.5 * rng.standard_normal((columns, columns)) / np.sqrt(columns)
    scales = np.arange(1, columns + 1) ** -0.5
    X = (rng.standard_normal((rows, columns)) @ mixing) * scales
    y = _draw_labels(X @ rng.standard_normal((columns, classes)), rng)
    return Problem("dense_20k", X, y, "gaussian, column scale j^-1/2, mixed columns, seed 20")


def _sparse_20k() -> Problem:
    rows, columns, classes, tokens = 20_000, 50_000, 5, 51
    rng = np.random.default_rng(21)
    law = 1.0 / (np.arange(columns) + 20.0)
    lengths = rng.poisson(tokens, rows)
    drawn = rng.choice(columns, size=lengths.sum(), p=law / law.sum())
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    counts = csr(sparse.csr_matrix((np.ones(len(drawn)), drawn, indptr), shape=(rows, columns)))
    counts.data = 1.0 + np.log(counts.data)
    weights = rng.standard_normal((columns, classes)) * (rng.random((columns, 1)) < 0.1)
    y = _draw_labels(counts @ weights, rng)
    return Problem("sparse_20k", counts, y, "Zipf columns, values 1 + log count, 10 % of weights, seed 21")


def _uci(file: str) -> np.ndarray:
    """Read a comma-separated UCI file as strings."""
    return np.loadtxt(data_directory() / "uci" / file, delimiter=",", dtype=str)


def _bupa() -> Problem:
    table = _uci("bupa.csv")[1:].astype(np.float64)
    return Problem("bupa", np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.int64), "raw values")


def _wine_uci() -> Problem:
    table = _uci("wine.csv").astype(np.float64)
    X, y = np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.int64)
    return Problem("wine_uci", X, y, "raw values")


def _heart() -> Problem:
    table = _uci("SPECT.test").astype(np.float64)
    note = "SPECT, test part only: it has the paper's 187 rows and 22 features"
    return Problem("heart", np.ascontiguousarray(table[:, 1:]), table[:, 0].astype(np.int64), note)


def _ionosphere() -> Problem:
    table = _uci("ionosphere.csv")
    X = table[:, :-1].astype(np.float64)
    X = np.ascontiguousarray(X[:, X.std(axis=0) > 0.0])
    y = (table[:, -1] == "g").astype(np.int64)
    return Problem("ionosphere", X, y, "raw values, the constant second column left out")


def _hepatitis() -> Problem:
    table = _uci("hepatitis.data")
    X = np.where(table[:, 1:] == "?", "nan", table[:, 1:]).astype(np.float64)
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    return Problem("hepatitis", X, table[:, 0].astype(np.int64), "raw values, missing ones set to the mean")


LOADERS: dict[str, Callable[[], Problem]] = {
    "wine": _wine,
    "breast_cancer": _breast_cancer,
    "digits": _digits,
    "adult": _adult,
    "a9a": lambda: _svmlight("a9a"),
    "w8a": lambda: _svmlight("w8a"),
    "secstr": _secstr,
    "text": _text,
    "srbct": _srbct,
    "fashion_mnist": _fashion_mnist,
    "kmnist": _kmnist,
    "adult14": _adult14,
    "dense_20k": _dense_20k,
    "sparse_20k": _sparse_20k,
    "bupa": _bupa,
    "wine_uci": _wine_uci,
    "heart": _heart,
    "ionosphere": _ionosphere,
    "hepatitis": _hepatitis,
}


def load(name: str) -> Problem:
    """Load one of the sets in `LOADERS`."""
    if name not in LOADERS:
        raise ValueError(f"unknown data set {name!r}; expected one of {', '.join(LOADERS)}")
    return LOADERS[name]()


if __name__ == "__main__":
    for each in LOADERS:
        problem = load(each)
        kind = f"CSR, {problem.X.nnz} non-zeros" if sparse.issparse(problem.X) else "dense"
        print(f"{each}: {problem.X.shape}, {problem.n_classes} classes, {kind}; {problem.note}")
