"""What all records are."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen record; unknown keys of a newer minor version are ignored when it is read back."""

    model_config = ConfigDict(frozen=True, extra="ignore")
