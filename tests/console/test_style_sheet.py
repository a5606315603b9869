"""The console's style sheet uses its tokens for space, type, shape, colour and state, and has no rule without use."""

import re

import pytest

from tests.console.style_sheet import classes_in_sheet, classes_in_use, declarations, tokens

SPACES = re.compile(r"(padding|margin|gap|row-gap|column-gap|scroll-margin)(-[a-z]+)?")
# Lengths that a rule may name itself: none, one that goes by the size of the text, and one of the window.
SPACE = re.compile(r"0|auto|-?[\d.]+em|[\d.]+vh|var\(--(space-\d|thumb|bar-height)\)|calc\([^;]*\)|env\([a-z-]+\)")
FONT_SIZE = re.compile(r"var\(--text-[a-z]+\)|inherit")
RADIUS = re.compile(r"0|50%|var\(--radius(-[a-z]+)?\)")
COLOUR = re.compile(
    r"#[0-9a-fA-F]{3,8}\b|\b(rgb|rgba|hsl|hsla|oklch|color|light-dark)\(|\b(black|white|red|gr[ae]y|green|blue)\b"
)
# Classes that are put together: the number of a series, the tone of a row.
PUT_TOGETHER = re.compile(r"[sk]\d|danger-(bad|warn)")

DECLARED = [one for one in declarations() if not one.name.startswith("--")]


def parts(value: str) -> list[str]:
    """The values of a shorthand; what stands in brackets is one."""
    return re.findall(r"(?:[^\s()]+\([^()]*(?:\([^()]*\)[^()]*)*\)|[^\s()]+)", value)


def test_spaces_are_those_of_the_scale() -> None:
    lengths = [
        (one, part)
        for one in DECLARED
        if SPACES.fullmatch(one.name)
        for part in parts(one.value.removesuffix(" !important"))
    ]
    assert len(lengths) > 200
    assert [one for one, part in lengths if not SPACE.fullmatch(part) or re.search(r"[\d.](rem|px)", part)] == []


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("font-size", FONT_SIZE),
        ("font-family", re.compile(r"var\(--(font|mono)\)")),
        ("font", re.compile(r"inherit|var\(--text-root\)/1\.5 var\(--font\)")),
        ("font-weight", re.compile(r"var\(--(plain|medium|bold|heavy)\)")),
        ("opacity", re.compile(r"[01]|var\(--faded\)")),
    ],
)
def test_type_and_states_are_tokens(name: str, allowed: re.Pattern[str]) -> None:
    values = [one for one in DECLARED if one.name == name]
    assert values
    assert [one for one in values if not allowed.fullmatch(one.value)] == []


def test_radii_are_tokens() -> None:
    assert any(one.name == "border-radius" for one in DECLARED)
    assert [
        one
        for one in DECLARED
        if one.name == "border-radius"
        for part in parts(one.value)
        if not RADIUS.fullmatch(part)
    ] == []


def test_colours_are_tokens() -> None:
    assert DECLARED
    assert [one for one in DECLARED if COLOUR.search(one.value)] == []


def test_every_token_is_used_and_every_used_one_is_there() -> None:
    used = {name for one in declarations() for name in re.findall(r"var\((--[\w-]+)", one.value)}
    assert used == set(tokens())


def test_every_class_of_the_sheet_is_used_by_a_template_or_a_script() -> None:
    unused = classes_in_sheet() - classes_in_use()
    assert {name for name in unused if not PUT_TOGETHER.fullmatch(name)} == set()
