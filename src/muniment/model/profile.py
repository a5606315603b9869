"""A built-in profile: what it promotes at once, and what waits for whom (PAC-8)."""

from pydantic import Field

from muniment.model.fields import Artifact, WriteClass


class ProfileClass(Artifact):
    """What a profile does with one write class."""

    write_class: WriteClass
    threshold: float | None = Field(description="confidence from which policy promotes it; none: only people do")
    working: float | None = Field(description="the same for the working tier, for facts of a session")
    proven_sources: tuple[str, ...] = Field(
        description="whose own confidence counts without the cap, each with its extractors"
    )


class Waiting(Artifact):
    """What a profile leaves to people, and to whom."""

    what: str
    waits_for: str


class Profile(Artifact):
    """A built-in profile: a pack by name."""

    name: str
    pack: str
    summary: str
    cap: float = Field(description="most confidence that a source which nobody has judged can claim")
    classes: tuple[ProfileClass, ...]
    waiting: tuple[Waiting, ...]
    own_updates: bool = Field(description="whether a user's newer fact about themselves replaces their older one")
    sample_share: float = Field(description="share of what policy promoted that reviewers look at again")
    undo_term: str = Field(description="how long a promotion by policy can be undone")
