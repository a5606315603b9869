"""The tools and channels that a credential may speak for, by name (ISO-8)."""

from typing import Annotated

from pydantic import AfterValidator, Field

from muniment.model.fields import Artifact, Name

TOOL, CHANNEL, IMPORT = "tool:", "channel:", "import:"
ALL = "*"
# What a capture's column `vouched` holds for the words of an end user; for a tool, and for the system that an import
# was read from, it holds the capture's origin.
USER = "user"


def _bare(name: str) -> str:
    if name.startswith((TOOL, CHANNEL)):
        raise ValueError("expected only the name, without tool: or channel:")
    if ALL in name and name != ALL:
        raise ValueError("expected a whole name, or * for all")
    return name


_Names = Annotated[frozenset[Annotated[Name, AfterValidator(_bare)]], Field(max_length=256)]


def is_only_claimed(origin: str | None, vouched: str | None) -> bool:
    """Whether an origin names a tool, a channel or an import that the author of the capture could not speak for."""
    return vouched is None and origin is not None and origin.startswith((TOOL, CHANNEL, IMPORT))


class SpeaksFor(Artifact):
    """The tools and channels that a credential may speak for; `*` means all. By default none."""

    tools: _Names = Field(default=frozenset(), description="tools whose results it may submit, such as crm.lookup")
    channels: _Names = Field(
        default=frozenset(), description="channels whose messages count as the end user's words, such as app_chat"
    )

    def has_tool(self, name: str) -> bool:
        """Whether it may speak for that tool."""
        return name in self.tools or ALL in self.tools

    def has_channel(self, name: str | None) -> bool:
        """Whether it may speak for that channel; for a channel that is not named only with `*`."""
        return ALL in self.channels or (name is not None and name in self.channels)

    def beyond(self, ceiling: "SpeaksFor") -> str | None:
        """The first tool or channel that the ceiling does not have; None where all lies within."""
        tools = [TOOL + name for name in sorted(self.tools) if not ceiling.has_tool(name)]
        channels = [CHANNEL + name for name in sorted(self.channels) if not ceiling.has_channel(name)]
        return next(iter([*tools, *channels]), None)
