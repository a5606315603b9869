"""A registered pack, and how it is sent over HTTP."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic_core import to_json

from muniment.model.fields import Artifact
from muniment.pack import Pack, load_pack


@dataclass(frozen=True)
class RegisteredPack:
    """A pack as it stands in the registry; `retired` when it can be neither activated nor pinned any more."""

    ref: str
    digest: str
    registered_at: datetime
    registered_by: str
    pack: Pack
    retired: bool = False
    in_force: bool = False


class PackShown(Artifact):
    """A registered pack with its whole document."""

    ref: str
    digest: str
    registered_at: datetime
    registered_by: str
    retired: bool
    in_force: bool
    document: dict[str, Any]

    @classmethod
    def of(cls, one: RegisteredPack) -> "PackShown":
        """The registered pack as data."""
        said = {name: getattr(one, name) for name in cls.model_fields if name != "document"}
        return cls(**said, document=one.pack.document())

    def result(self) -> RegisteredPack:
        """The registered pack, loaded."""
        said = {name: getattr(self, name) for name in PackShown.model_fields if name != "document"}
        return RegisteredPack(**said, pack=load_pack(to_json(self.document)))
