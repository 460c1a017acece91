"""Tell objects from background in generated images: learn a CRF on grids, by best configurations only and by messages."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from partita import BlockFrankWolfe, ConvergenceWarning, GraphCRF
from partita.report import format_table

TRAIN, TEST, HEIGHT, WIDTH = 10, 4, 40, 56
PASSES = (1, 10, 60)


def make_images(count: int, random_state: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Brightness with strong noise, and masks of a few ellipses."""
    rng = np.random.default_rng(random_state)
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    images, masks = [], []
    for _ in range(count):
        mask = np.zeros((HEIGHT, WIDTH), bool)
        for _ in range(rng.integers(2, 5)):
            a, b, angle = rng.uniform(5, 14), rng.uniform(4, 9), rng.uniform(0, np.pi)
            y, x = rows - rng.uniform(8, HEIGHT - 8), columns - rng.uniform(8, WIDTH - 8)
            along, across = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
            mask |= (along / a) ** 2 + (across / b) ** 2 < 1.0
        images.append(mask + 1.1 * rng.standard_normal(mask.shape))
        masks.append(mask.astype(int))
    return images, masks


def as_graph(image: np.ndarray, edges: bool = True) -> dict[str, Any]:
    """Pixels with their brightness, and neighbours with whether it differs by much."""
    graph: dict[str, Any] = {"nodes": image.reshape(-1, 1)}
    if edges:
        number = np.arange(image.size).reshape(image.shape)
        across, down = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
        pairs = np.vstack([np.column_stack([one.ravel(), two.ravel()]) for one, two in (across, down)])
        apart = np.abs(np.diff(image.ravel()[pairs], axis=1))
        graph |= {"edges": pairs, "edge_features": (apart > [1.0, 2.0, 3.0]).astype(float)}
    return graph


def main(folder: Path = Path("demo-output")) -> None:
    images, masks = make_images(TRAIN + TEST)
    y = [mask.ravel() for mask in masks]
    X = [as_graph(image) for image in images]
    models: dict[str, tuple[Any, Any]] = {
        f"best configurations, {passes} pass{'es' * (passes > 1)}": (
            GraphCRF(l2=100.0, likelihood="bethe", solver=BlockFrankWolfe(), max_iter=passes),
            X,
        )
        for passes in PASSES
    }
    models["messages (auto)"] = (GraphCRF(l2=100.0, likelihood="bethe"), X)
    models["pixels alone"] = (GraphCRF(l2=100.0), [as_graph(image, edges=False) for image in images])
    print(f"Noisy images of {HEIGHT} x {WIDTH}: {TRAIN} to learn from, {TEST} to test on\n")
    rows, shown = [], []
    warnings.simplefilter("ignore", ConvergenceWarning)  # a few passes are meant to end before the certificate is small
    for name, (model, graphs) in models.items():
        start = time.perf_counter()
        model.fit(graphs[:TRAIN], y[:TRAIN])
        seconds = time.perf_counter() - start
        error = 1.0 - model.score(graphs[TRAIN:], y[TRAIN:])
        rows.append([name, f"{seconds:.2f}", f"{model.gap_:.2g}", f"{100 * error:.1f}"])
        if name.startswith("best"):
            passes = "1 pass" if model.n_iter_ == 1 else f"{model.n_iter_} passes"
            shown.append((f"after {passes}", model.predict_marginals(graphs[TRAIN:][:1])[0][:, 1]))
            last = model
    print(format_table(["learned by", "seconds", "certificate", "wrong pixels, %"], rows))
    shown.append(("best labelling", last.predict(X[TRAIN:][:1])[0]))
    folder.mkdir(exist_ok=True)
    plot(images[TRAIN], masks[TRAIN], shown, folder / "segmentation.png")
    print(f"\nPicture: {folder / 'segmentation.png'}")


def plot(image: np.ndarray, mask: np.ndarray, shown: list[tuple[str, Any]], path: Path) -> None:
    """A test image, what is learned about it as training goes on, and the truth."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    low, high = np.percentile(image, [2, 98])
    columns = [("test image", np.clip((image - low) / (high - low), 0, 1)), *shown, ("truth", mask)]
    figure, axes = plt.subplots(2, 3, figsize=(8, 4.4))
    for axis, (title, values) in zip(axes.ravel(), columns, strict=True):
        axis.imshow(np.reshape(values, mask.shape), cmap="gray", vmin=0, vmax=1)
        axis.set_title(title, fontsize=10)
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
