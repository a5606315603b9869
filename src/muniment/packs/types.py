"""A registered pack, and how it is sent over HTTP."""

from datetime import datetime
from typing import Any

from pydantic_core import to_json

from muniment.model.fields import Artifact
from muniment.pack import Pack, load_pack


class _Registration(Artifact):
    ref: str
    digest: str
    registered_at: datetime
    registered_by: str
    retired: bool
    in_force: bool

    def registration(self) -> dict[str, Any]:
        """The fields that `RegisteredPack` and `PackShown` share."""
        return {name: getattr(self, name) for name in _Registration.model_fields}


class RegisteredPack(_Registration):
    """A pack as it stands in the registry; `retired` when it can be neither activated nor pinned any more."""

    pack: Pack


class PackShown(_Registration):
    """A registered pack with its whole document."""

    document: dict[str, Any]

    @classmethod
    def of(cls, one: RegisteredPack) -> "PackShown":
        """The registered pack as data."""
        return cls(**one.registration(), document=one.pack.document())

    def result(self) -> RegisteredPack:
        """The registered pack, loaded."""
        return RegisteredPack(**self.registration(), pack=load_pack(to_json(self.document)))
