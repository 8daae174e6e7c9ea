"""What requests and answers look like; FastAPI writes the OpenAPI description from these."""

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    WithJsonSchema,
)
from pydantic.json_schema import SkipJsonSchema

from streamhash.labels import MOST_LABELS
from streamhash.storable import MetadataTexts

TOO_LARGE = 2**63


def _whole(value: Any) -> Any:
    """Take 3.0 for 3, as JSON does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Number = Annotated[int, Field(ge=0, lt=TOO_LARGE), BeforeValidator(_whole)]
Text = Annotated[str, Field(max_length=1000)]
Where = Annotated[str, Field(max_length=10_000)]
Id = Number | Text
Label = Annotated[int, Field(gt=-TOO_LARGE, lt=TOO_LARGE), BeforeValidator(_whole)] | Text
# Reading a body has made vectors an array and metadata texts; the lists are for the description.
# The titles tell where it says how many there may be.
Vector = Annotated[list[float], Field(min_length=1, title="Vector")]
Lists = Annotated[list[Vector], Field(min_length=1, title="Vectors")]
Vectors = Annotated[
    SkipJsonSchema[InstanceOf[np.ndarray]] | Lists, Field(union_mode="left_to_right")
]
Ids = Annotated[list[Id], Field(min_length=1, title="Ids", examples=[[0]], fail_fast=True)]
Several = Annotated[list[Label], Field(max_length=MOST_LABELS, fail_fast=True)]
Labels = Annotated[
    list[Label | Several | None], Field(title="Labels", examples=[[1]], fail_fast=True)
]
Metadata = Annotated[
    SkipJsonSchema[InstanceOf[MetadataTexts]]
    | Annotated[list[dict[str, Any] | None], Field(title="Metadata")],
    Field(union_mode="left_to_right"),
]
Rescore = Annotated[int, Field(ge=1, le=1000), BeforeValidator(_whole)]
# 10 or 10.0, which are the same in JSON.
K = Annotated[
    Annotated[int, Field(ge=1)] | Annotated[float, Field(ge=1, multiple_of=1)],
    WithJsonSchema({"type": "integer", "minimum": 1, "title": "K"}),
]


class _Body(BaseModel):
    """What comes in: nothing is guessed, nothing unknown is passed over."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class VectorBody(_Body):
    """A body that has vectors, and may come as raw numbers (see ``frames``)."""


def _either(one: str, other: str) -> dict[str, Any]:
    return {"required": [one], "properties": {one: {"type": "array"}, other: {"type": "null"}}}


class SearchBody(VectorBody):
    """Vectors, or ids of items, whose neighbours are asked for."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [_either("vectors", "ids"), _either("ids", "vectors")]}
    )

    vectors: Vectors | None = None
    ids: Ids | None = Field(None, description="Ask with the vectors of these items.")
    k: K = Field(10, description="Neighbours of each query.")
    model: Number | None = Field(None, description="An older model, tried on a sample of items.")
    metadata: bool = Field(True, description="Whether to answer with metadata.")
    where: Where | dict[str, Any] | None = Field(None, description="Only items this holds for.")
    rescore: Rescore | None = Field(None, description="Candidates an answer, scored exactly.")
    by: Literal["vectors", "projections"] = Field("vectors", description="What is scored.")
    metric: Literal["cosine", "dot", "euclidean"] = Field("cosine", description="And how.")
    query: Literal["code", "real"] = Field("code", description="The query's side of a distance.")
    min_probability: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="Leave out answers that are less sure."
    )
    radius: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Leave out what is farther away, in bits."
    )


# Those of a search.
OPTIONS = {"where", "rescore", "by", "metric", "query", "min_probability", "radius"}


class EncodeBody(VectorBody):
    """Vectors to encode."""

    vectors: Vectors


class PredictBody(VectorBody):
    """Vectors whose labels are asked for."""

    vectors: Vectors
    k: K = Field(10, description="Neighbours of each that vote.")


class AddBody(VectorBody):
    """Items to add."""

    vectors: Vectors
    ids: Ids | None = Field(None, description="One an item; null numbers them on.")
    labels: Labels | None = Field(None, description="One an item, or a list, null for none.")
    metadata: Metadata | None = Field(None, description="One an item.")
    existing: Literal["refuse", "skip", "replace", "update"] = Field(
        "refuse", description="What to do with ids that are there."
    )


OneLabel = Label | Several | None
OneMetadata = Annotated[
    SkipJsonSchema[InstanceOf[MetadataTexts]] | dict[str, Any] | None,
    Field(union_mode="left_to_right"),
]


class ItemBody(_Body):
    """All of an item, but its id."""

    vector: Vector
    label: OneLabel = None
    metadata: OneMetadata = None


class ItemChanges(_Body):
    """What is to be changed of an item; the rest stays as it is."""

    vector: Vector | None = None
    label: OneLabel = Field(None, description="null takes it away.")
    metadata: OneMetadata = Field(
        None,
        description="Fields that change, null for those that go, as in JSON merge patch (RFC "
        "7396); null instead of an object takes all away.",
    )


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", examples=["shop"])]


class CreateBody(_Body):
    """A collection that is to be made: the options are those of ``Collection.create``."""

    name: Name = Field(description="Letters, digits, dots, dashes and underscores.")
    method: Text = Field("sdoh", description="A name that `streamhash methods` lists.")
    n_bits: Annotated[int, Field(ge=1, le=65_536)] | None = Field(
        None, description="Length of the codes; null: as the method has it by itself."
    )
    parameters: dict[str, Any] = Field({}, description="Others of the method.")
    random_state: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    labels: Literal["one", "several"] | None = Field(None, description="Labels of an item.")
    vectors: Literal["float32", "float16"] = Field("float32", description="How they are stored.")
    refresh: Text | Number = Field("auto", description="auto, gain, manual, or items.")
    forget_deleted: bool = True
    durability: Literal["synced", "process"] = "synced"


class LabelBody(_Body):
    """Labels of items that are there."""

    ids: Ids
    labels: Labels


class MetadataBody(_Body):
    """Metadata of items that are there."""

    ids: Ids
    metadata: Metadata = Field(description="One an item, null for none.")


class FeedbackBody(VectorBody):
    """Judged answers: of vectors, or of items, as queries; one for all, or one each."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [_either("vectors", "query_ids"), _either("query_ids", "vectors")]
        }
    )

    vectors: Vectors | None = None
    query_ids: Ids | None = Field(None, description="The queries, if they are items.")
    ids: Ids = Field(description="The items that were judged as answers.")
    good: bool | Annotated[list[bool], Field(title="Good", fail_fast=True)] = Field(
        True, description="Whether they are good answers: all, or each."
    )


class IdsBody(_Body):
    """Items by their ids."""

    ids: Ids


class RefreshBody(_Body):
    """Whether the answer is to wait for the end."""

    wait: bool = False


class RevertBody(RefreshBody):
    """An older model that is to serve again."""

    model: Number


class ByModel(_Body):
    """A model that serves or has served."""

    model: Number = Field(examples=[1])


class ByMethod(_Body):
    """A method, learned from the labelled items of the sample."""

    method: str = Field(description="A name that `streamhash methods` lists.", examples=["lsh"])


class CompareBody(_Body):
    """The same queries by two models or methods."""

    queries: Annotated[Vectors | Ids, Field(union_mode="left_to_right")] | None = Field(
        None, description="Vectors or ids; null draws items, as many of each label as can be."
    )
    n_queries: K = Field(100, description="How many are drawn.")
    seed: Number = Field(0, description="Of what is drawn.")
    shown: K | None = Field(None, description="Queries whose neighbours are told; null: all.")
    k: K = 10
    left: ByModel | ByMethod
    right: ByModel | ByMethod


class ErrorFacts(BaseModel):
    """A word for programs, and a sentence for people."""

    code: str
    message: str


class ErrorBody(BaseModel):
    """Every error."""

    error: ErrorFacts


class CollectionFacts(BaseModel):
    """A collection: how large it is, what serves, and how good it is."""

    name: str
    items: int
    features: int | None = Field(description="Numbers of a vector; null before the first.")
    method: str
    bits: int
    model: int = Field(description="The number of the one that serves; 0: none yet.")
    precision: float | None = Field(description="Recent labelled items' share of right neighbours.")
    writable: bool


class CollectionList(BaseModel):
    """The collections of the service."""

    collections: list[CollectionFacts]
    can_create: bool = Field(description="Whether some can be created and dropped.")
    may_write: bool = Field(description="Whether the token that came opens changes.")


class Dropped(BaseModel):
    """The collection that is gone."""

    dropped: str


class ShortItem(BaseModel):
    """An item of a list."""

    id: int | str
    label: int | str | list[int | str] | None
    metadata: dict[str, Any] | None


class Neighbour(ShortItem):
    """An item that was found."""

    distance: int | float  # bits; before there is a model, 1 - cosine
    score: float | None = Field(None, description="Of a rescored search, or a real-valued one.")
    probability: float | None = Field(None, description="That it has the query's label.")


class Found(BaseModel):
    """What a search found."""

    model: int
    sample: int | None = Field(description="Items that were searched, where not all were.")
    codes: list[str]
    results: list[list[Neighbour]]


class Side(BaseModel):
    """What one side of a comparison found."""

    model: int | None
    method: str | None
    codes: list[str]
    results: list[list[Neighbour]]


class Difference(BaseModel):
    """How much better the right side is, over the queries: the mean, and its 95 % interval."""

    mean: float
    low: float | None
    high: float | None


class Comparison(BaseModel):
    """Both sides."""

    sample: int
    queries: int = Field(description="How many queries were asked.")
    ids: list[int | str] | None = Field(description="Of the queries that are shown, if items.")
    difference: Difference | None = Field(description="null where no query has a label.")
    left: Side
    right: Side
    precision: dict[Literal["left", "right"], float | None] = Field(
        description="Share of neighbours that have their query's label, of several one at least."
    )


class ClassQuality(BaseModel):
    """How well the items of a class are found."""

    label: int | str
    queries: int
    precision: float


class Quality(BaseModel):
    """How well the model that serves finds items, tried on a sample; the worst classes first."""

    model: int
    sample: int
    queries: int
    precision: float | None
    classes: list[ClassQuality]


class LabelCount(BaseModel):
    """How many items have a label; null: none."""

    label: int | str | None
    items: int


class LabelCounts(BaseModel):
    """The labels, the most frequent first."""

    labels: list[LabelCount]


class Display(_Body):
    """Which fields of the metadata people see first."""

    title: Text | None = Field(None, description="What an item is called by.")
    subtitle: list[Text] = Field([], max_length=20, description="Fields below it.")
    image: Text | None = Field(None, description="A URL, a data URL, or width and height.")
    about: Annotated[str, Field(max_length=2000)] | None = Field(
        None, description="What is in the collection, in a sentence or two."
    )


class DisplaySaid(Display):
    """The display settings, said or guessed."""

    guessed: bool


class FileAdded(BaseModel):
    """What became of a file."""

    read: int
    added: int
    columns: str | None = Field(description="Which are features, id, label and metadata.")


class ItemList(BaseModel):
    """Some items."""

    total: int
    items: list[ShortItem]


class FullItem(ShortItem):
    """All of an item."""

    vector: list[float]
    code: str | None


class FullItems(BaseModel):
    """Items in the order of the ids asked for."""

    items: list[FullItem]


class Encoded(BaseModel):
    """Codes, and the model that made them."""

    model: int
    codes: list[str]


class Predicted(BaseModel):
    """The likeliest label of each vector; lists of them where items have several."""

    labels: list[int | str | list[int | str] | None] = Field(
        description="null where no labelled item is near."
    )
    probabilities: list[float | list[float | None] | None] = Field(
        description="null where nothing is known."
    )


class Added(BaseModel):
    """How many items were stored."""

    added: int


class Stored(BaseModel):
    """Whether an item is new, or took the place of another."""

    created: bool


class Labelled(BaseModel):
    """How many items have got labels."""

    labelled: int


class Described(BaseModel):
    """How many items have got other metadata."""

    described: int


class Judged(BaseModel):
    """How many judgements were stored."""

    judged: int


class Deleted(BaseModel):
    """How many items were deleted."""

    deleted: int


class Refreshing(BaseModel):
    """Whether a refresh goes on, or what it did."""

    running: bool
    changed: bool | None = None


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class Ready(BaseModel):
    """A model serves."""

    ready: Literal[True]


class ModelFacts(BaseModel):
    """A model that serves or has served."""

    model_config = ConfigDict(extra="allow")

    number: int


class HistoryBody(BaseModel):
    """What has happened, the oldest first."""

    refreshes: list[dict[str, Any]]
    drifts: list[dict[str, Any]]
    series: list[dict[str, float | None]]


class StatusBody(BaseModel):
    """How the collection does."""

    model_config = ConfigDict(extra="allow")

    items: int
    labelled: int
    bits: int
    features: int | None
    writable: bool
    streamhash: str
    learner: dict[str, Any]
    feedback: dict[str, int]
    serving: dict[str, Any]
    refresh: dict[str, Any]
    quality: dict[str, Any]
    codes: dict[str, Any]
