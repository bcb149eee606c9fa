"""Settings of the recall service, as the composition root fills them. Nothing here reads the environment."""

from pydantic import BaseModel, ConfigDict, Field


class RecallSettings(BaseModel):
    """How much memory a process of the recall service gives to the graphs asked lately."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    hot: bool = True
    """Answers from graphs held in memory. False: every question reads the stores, several times slower."""
    snapshots: bool = True
    """Keeps what is held of a graph of 1,000 facts or more in the memory store too, some 500 bytes a fact, so
    that the next process needn't read all of it. False while processes of a release without snapshots still
    delete texts beside."""
    hot_mebibytes: int = Field(default=512, ge=1)
    """Memory for graphs held, half for facts and half for texts; the least recently asked go first. 5,000
    facts take some 15 MiB with their vectors. Vectors that don't fit are searched in the vector store."""
