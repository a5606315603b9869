"""Completion: a script for one's shell, with every command in it, so that a press of Tab starts no program."""

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperGroup

from muniment.cli.asking import Call, ListsByDefault, verb
from muniment.cli.output import Screen

app = typer.Typer()
Shell = Literal["bash", "zsh", "fish"]


@dataclass(frozen=True)
class _Flag:
    """An option, by all its names."""

    names: tuple[str, ...]
    said: str
    takes_value: bool
    choices: tuple[str, ...]


@dataclass(frozen=True)
class _Place:
    """What may follow one command or group, named by its path."""

    path: tuple[str, ...]
    said: str
    below: tuple[str, ...]
    flags: tuple[_Flag, ...]
    choices: tuple[str, ...]


@verb(app, "completion", panel="Run it", example="source <(muniment completion bash)")
def completion(call: Call, shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print a script that has a shell complete commands, options and the values they know.

    For bash, in ~/.bashrc: source <(muniment completion bash). For zsh the same with zsh, in ~/.zshrc. For fish:
    muniment completion fish > ~/.config/fish/completions/muniment.fish. Print it again after an upgrade.
    """
    # The program as a whole, of which this is a part.
    from muniment.cli import app as whole

    places = list(_places(typer.main.get_command(whole), ()))
    script = _fish(places) if shell == "fish" else _bash(places, shell)
    call.show({"shell": shell, "script": script}, lambda: Screen().write(script))


def _places(command: Any, path: tuple[str, ...]) -> Iterator[_Place]:
    below: dict[str, Any] = dict(command.commands) if isinstance(command, TyperGroup) else {}
    # A group that lists when nothing is named takes the options of its list.
    listing = [below["list"]] if isinstance(command, ListsByDefault) else []
    params: list[Any] = [one for owner in (command, *listing) for one in owner.params]
    yield _Place(
        path,
        str(command.get_short_help_str(80)),
        tuple(below),
        (*(_flag(one) for one in params if one.opts[0][0] == "-" and not one.hidden), _HELP),
        tuple(choice for one in params if one.opts[0][0] != "-" for choice in _choices(one)),
    )
    for name, one in below.items():
        yield from _places(one, (*path, name))


_HELP = _Flag(("--help",), "Show this message and exit.", takes_value=False, choices=())


def _flag(option: Any) -> _Flag:
    return _Flag((*option.opts, *option.secondary_opts), option.help or "", not option.is_flag, _choices(option))


def _choices(parameter: Any) -> tuple[str, ...]:
    kind = parameter.type_descriptor.annotation
    return get_args(kind) if get_origin(kind) is Literal else ()


# INVARIANT: no variable has a name that zsh keeps for itself (path, words, options, commands, ...).
_BASH = """\
_muniment_after() {{
    nested='' choices=''
    case "$1" in
{places}
    esac
}}
_muniment_values() {{
    case "$1" in
{values}
    esac
}}
_muniment() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    local at='' nested='' flags='' choices='' place word
    _muniment_after ''
    for ((place = 1; place < COMP_CWORD; place++)); do
        word="${{COMP_WORDS[place]}}"
        case " $nested " in
            *" ${{word:--}} "*) at="${{at:+$at }}$word"; _muniment_after "$at" ;;
        esac
    done
    choices="$nested $choices"
    case "$current" in
        -*) choices="$flags" ;;
        *) _muniment_values "${{at:+$at }}$before" ;;
    esac
    COMPREPLY=($(compgen -W "$choices" -- "$current"))
}}
complete -o default -F _muniment muniment
"""


def _bash(places: list[_Place], shell: Shell) -> str:
    known = [
        f"        {quote(' '.join(one.path))}) nested={quote(' '.join(one.below))} "
        f"flags={quote(' '.join(name for flag in one.flags for name in flag.names))} "
        f"choices={quote(' '.join(one.choices))} ;;"
        for one in places
    ]
    values = [
        f"        {quote(' '.join((*one.path, name)))}) choices={quote(' '.join(flag.choices))} ;;"
        for one in places
        for flag in one.flags
        for name in flag.names
        if flag.choices
    ]
    # Zsh takes the scripts of bash once it is told to.
    first = "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n" if shell == "zsh" else ""
    return first + _BASH.format(places="\n".join(known), values="\n".join(values))


def _fish(places: list[_Place]) -> str:
    return "".join(f"complete -c muniment {line}\n" for one in places for line in _fish_lines(one, places))


def _fish_lines(one: _Place, places: list[_Place]) -> Iterator[str]:
    seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in one.path)
    here = f"{seen}; and not __fish_seen_subcommand_from {' '.join(one.below)}" if seen and one.below else seen
    for place in places:
        if place.path[:-1] == one.path and place.path:
            yield f"-n {_told(here or '__fish_use_subcommand')} -f -a {place.path[-1]} -d {_told(place.said)}"
    if one.choices:
        yield f"-n {_told(here)} -f -a {_told(' '.join(one.choices))}"
    for flag in one.flags:
        names = " ".join(f"-l {name[2:]}" if name[:2] == "--" else f"-s {name[1:]}" for name in flag.names)
        value = f" -x -a {_told(' '.join(flag.choices))}" if flag.choices else " -r" if flag.takes_value else ""
        yield f"-n {_told(here or '__fish_use_subcommand')} {names}{value} -d {_told(flag.said)}"


def _told(text: str) -> str:
    """A text in fish's quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
