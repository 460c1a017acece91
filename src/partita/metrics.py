"""How good label sequences are: ``metrics.chunk_scores(y_true, y_pred)``. Names of ``sklearn_crfsuite.metrics`` work too."""

from .report.chunks import ChunkCounts, ChunkScores, chunk_scores
from .report.labels import (
    Confusion,
    LabelScores,
    confusion,
    flat_accuracy_score,
    flat_classification_report,
    flat_f1_score,
    flat_fbeta_score,
    flat_precision_score,
    flat_recall_score,
    label_scores,
    sequence_accuracy,
    sequence_accuracy_score,
    token_accuracy,
)

__all__ = [
    "ChunkCounts",
    "ChunkScores",
    "Confusion",
    "LabelScores",
    "chunk_scores",
    "confusion",
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_f1_score",
    "flat_fbeta_score",
    "flat_precision_score",
    "flat_recall_score",
    "label_scores",
    "sequence_accuracy",
    "sequence_accuracy_score",
    "token_accuracy",
]
