"""The public names of ``streamhash.metrics``, loaded when they are first used."""

from .retrieval import (
    RANKS as RANKS,
    Retrieval as Retrieval,
    area_under_curve as area_under_curve,
    evaluate as evaluate,
    evaluate_by_class as evaluate_by_class,
    mean_average_precision as mean_average_precision,
    mean_over_classes as mean_over_classes,
    precision_at_ranks as precision_at_ranks,
    precision_within_radius as precision_within_radius,
)
from .scorers import (
    RetrievalScorer as RetrievalScorer,
    map_by_class_scorer as map_by_class_scorer,
    map_scorer as map_scorer,
    precision_scorer as precision_scorer,
    radius_scorer as radius_scorer,
)

__all__: list[str]
