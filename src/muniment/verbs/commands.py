"""Writes the table of plain commands, `cli/generated.py`, from the declarations of their verbs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AwareDatetime
from pydantic.fields import FieldInfo

from muniment.access.roles import ALLOWED, Right
from muniment.model.context import Role
from muniment.verbs.declaration import Declaration
from muniment.verbs.registry import plain_commands

# The role that a command acts in where several have the right.
_ROLES: Mapping[Right, Role] = {
    "notices": "reviewer",
    "read_captures": "auditor",
    "read_consent": "privacy_officer",
    "read_erasures": "auditor",
    "read_memory": "auditor",
    "read_packs": "admin",
    "read_queue": "reviewer",
    "read_work": "admin",
}
# Options that are not called like their fields: short words, and one that another option of every command has.
_FLAGS = {"write_class": "--class", "closed": "--all", "overdue": "--overdue/--not-overdue", "kind": "--capture-kind"}
_PARAMETERS = {"kind": "capture_kind"}
# Declared in `cli.options`, with the words of a person at a terminal.
DECLARED = {
    "capture_id": "CaptureId",
    "memory_id": "MemoryId",
    "proposal_id": "ProposalId",
    "evidence_refs": "Evidence",
    "note": "Note",
    "version": "Version",
}
_PREFIXES = {
    "webhook_id": "whk",
    "notice_id": "ntc",
    "key_id": "key",
    "consent_id": "cns",
    "contradiction_id": "ctr",
    "request_id": "erq",
}
_METAVARS = {"subject": "CEID", "entity": "CEID", "assignee": "ID", "to": "ID", "ref": "PACK", "write_class": "CLASS"}
_PAGE = ("limit", "after")
# The longest part of a help text that stands on one line of the table.
_LINE = 96
# Sentences for programs: what is raised, how a list is narrowed and continued.
_FOR_PROGRAMS = re.compile(r"Raises |They can be narrowed|`after` is ")
_CLAUSE_FOR_PROGRAMS = re.compile(r"; (?:raises |returns |`after` is )[^.]*")
_SENTENCE_END = re.compile(r"(?<=\.)\s+")


def command_table() -> str:
    """The table as Python source: the command, and what `cli.plain` makes of it."""
    entries = (f'"{path}": Plain({_entry(one)})' for path, one in plain_commands().items())
    return f"COMMANDS: Mapping[str, Plain] = {{{','.join(entries)}}}\n"


def _entry(verb: Declaration[Any]) -> str:
    fields = verb.input.model_fields if verb.input is not None else {}
    paged = verb.page_key is not None
    own = [_Field(name, one, verb) for name, one in fields.items() if not (paged and name in _PAGE)]
    help_text = _help(verb.doc, {one.name: one.flag for one in own if not one.is_argument})
    lines = re.findall(rf"(?s).{{1,{_LINE}}}(?: |\n\n|$)", help_text)
    parts: dict[str, Any] = {
        "roles": tuple(_roles(verb)),
        "page_key": verb.page_key,
        "limit": fields["limit"].default if paged else None,
        "counts_after": paged and _inner(fields["after"].annotation) is int,
        "many": get_origin(verb.result) in (list, Sequence),
        "served": verb.method is not None,
        "times": tuple(one.name for one in own if one.kind is datetime),
        "pairs": tuple(one.name for one in own if one.kind is dict),
    }
    shown = [f"verb={verb.name!r}", f"help=({' '.join(map(repr, lines))})"]
    shown += [f"{name}={value!r}" for name, value in parts.items() if value not in (None, (), name == "served")]
    # Arguments stand before options.
    declared = [one.source for one in sorted(own, key=lambda one: not one.is_argument)]
    return ", ".join([*shown, *([f"parameters=({', '.join(declared)},)"] if declared else [])])


def _roles(verb: Declaration[Any]) -> Iterator[Role]:
    """The roles that a command acts in unless others are named; none for the work of a tenant."""
    for right in (verb.right, verb.also_right) if verb.caller != "tenant" else ():
        if right is not None:
            yield _ROLES[right] if right in _ROLES else min(ALLOWED[right])


def _help(doc: str, flags: Mapping[str, str]) -> str:
    """What a verb does, for people: options instead of fields, and nothing that only programs need."""

    def spoken(found: re.Match[str]) -> str:
        return flags.get(found[1], found[1])

    paragraphs = (" ".join(_spoken_sentences(one)) for one in doc.split("\n\n"))
    return "\n\n".join(re.sub(r"`([^`]+)`", spoken, one) for one in paragraphs if one)


def _spoken_sentences(paragraph: str) -> Iterator[str]:
    for sentence in _SENTENCE_END.split(" ".join(paragraph.split())):
        if not _FOR_PROGRAMS.match(sentence):
            yield _CLAUSE_FOR_PROGRAMS.sub("", sentence)


@dataclass(frozen=True)
class _Field:
    """A field of a verb's input as an argument or an option of its command."""

    name: str
    info: FieldInfo
    verb: Declaration[Any]

    @property
    def is_argument(self) -> bool:
        return self.name in self.verb.positional

    @property
    def flag(self) -> str:
        return _FLAGS.get(self.name, "--" + self.name.removesuffix("_id").replace("_", "-"))

    @property
    def kind(self) -> Any:
        """The type that it holds: a plain one, `datetime`, `dict`, `tuple`, or a `Literal`."""
        kept = _inner(self.info.annotation)
        origin = get_origin(kept)
        return datetime if kept is AwareDatetime else origin if origin in (dict, tuple) else kept

    @property
    def source(self) -> str:
        """It as Python source."""
        required = self.info.is_required()
        type_ = {datetime: "str", dict: "list[str]", tuple: "list[str]"}.get(self.kind) or _written(self.kind)
        optional = "" if required or (self.kind is bool and self.info.default is False) else " | None"
        default = "" if required else ", False" if self.info.default is False else ", None"
        usage, words = self._usage_and_help()
        made = f'Annotated[{type_}{optional}, {"argument" if self.is_argument else "flag"}("{usage}", "{words}")]'
        if self.name in DECLARED and (self.is_argument or not self.verb.page_key):
            made = DECLARED[self.name]
        return f'parameter("{_PARAMETERS.get(self.name, self.name)}", {made}{default})'

    def _usage_and_help(self) -> tuple[str, str]:
        noun = self.name.removesuffix("_id")
        if self.is_argument:
            many = f"{noun.removesuffix('_ids').upper()}..." if self.kind is tuple else None
            metavar = many or _METAVARS.get(self.name, noun.upper())
            return metavar, self._described(f"the id of a {noun}, {_PREFIXES.get(self.name)}_...")
        usage = f"{self.flag} {self._metavar(noun)}".rstrip()
        return usage, self._described(f"only this {self.flag[2:].replace('-', ' ')}")

    def _metavar(self, noun: str) -> str:
        if self.kind is datetime or self.kind is dict:
            return "TIME" if self.kind is datetime else "NAME=VALUE"
        if self.kind is not str:
            return "SEQ" if self.name == "after" else ""
        return noun.upper() if self.name != noun else _METAVARS.get(self.name, "TEXT")

    def _described(self, otherwise: str) -> str:
        words = (self.info.description or otherwise).replace("`", "")
        if self.kind is datetime:
            words = words.replace(";", ", in ISO 8601;") if ";" in words else f"{words}, in ISO 8601"
        elif self.kind is dict:
            words += "; can be repeated"
        return words[0].upper() + words[1:] + ("" if words.endswith("...") else ".")


def _inner(annotation: Any) -> Any:
    """The type within `Annotated` and `| None`."""
    if get_origin(annotation) is Annotated:
        return _inner(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return _inner(next(one for one in get_args(annotation) if one is not NoneType))
    return annotation


def _written(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"Literal[{', '.join(repr(one) for one in get_args(kind))}]"
    return kind.__name__
