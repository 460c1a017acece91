from .report.chunks import ChunkCounts as ChunkCounts, ChunkScores as ChunkScores, chunk_scores as chunk_scores
from .report.labels import (
    Confusion as Confusion,
    LabelScores as LabelScores,
    confusion as confusion,
    flat_accuracy_score as flat_accuracy_score,
    flat_classification_report as flat_classification_report,
    flat_f1_score as flat_f1_score,
    flat_fbeta_score as flat_fbeta_score,
    flat_precision_score as flat_precision_score,
    flat_recall_score as flat_recall_score,
    label_scores as label_scores,
    sequence_accuracy as sequence_accuracy,
    sequence_accuracy_score as sequence_accuracy_score,
    token_accuracy as token_accuracy,
)
