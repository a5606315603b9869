"""Loading a pack: every error at its line, in plain words, and never anything but `PackInvalid`."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.errors import PackInvalid
from muniment.pack import builtin_pack, load_pack
from muniment.pack.source import TEXT_LIMIT, VALUE_LIMIT

HEAD = 'pack_meta: {id: acme.support, version: "2.1.0"}\n'


def problems_of(source: str | bytes | Path) -> list[tuple[int | None, str, str]]:
    with pytest.raises(PackInvalid) as refused:
        load_pack(source)
    assert refused.value.problems
    return [(problem.line, problem.path, problem.message) for problem in refused.value.problems]


@pytest.mark.rule("PAC-1")
def test_a_wrong_pack_is_refused_whole_with_every_error_at_its_line():
    text = """\
pack_meta:
  id: Acme
  version: 1.0
classifications:
  - name: PUBLIC
    sensitive: yes
  - sensitive: true
memory_layr: {}
memory_layer:
  recall_policy:
    confidense: 0.4
    confidence: "0.9"
    max_recalls:
      8.5
  memory_policy:
    ttl:
      wroking: 1h
      episodic: 30
    tier_routing:
      - when: {source: robot}
        tier: semantic
  classes:
    preference: {approval: auto, risk: high, auto_promotion: {}}
  trust: {floor: 1.5, floor: 0.4}
"""
    unknown = "is not a known key (did you mean {}?); expected one of {}"
    tiers = "working, episodic, semantic, durable"
    assert problems_of(text) == [
        (
            2,
            "pack_meta.id",
            "expected a small letter, then up to 63 small letters, digits, dots, dashes or underscores",
        ),
        (3, "pack_meta.version", "expected a text, got the number 1.0; put it in quotes"),
        (6, "classifications.0.sensitive", 'expected true or false, got the text "yes"'),
        (7, "classifications.1.name", "is missing; expected it here"),
        (
            8,
            "memory_layr",
            unknown.format(
                "memory_layer",
                "pack_meta, classifications, roles, identity, ontology, memory_layer, policy_layer",
            ),
        ),
        (
            11,
            "memory_layer.recall_policy.confidense",
            unknown.format(
                "confidence", "max_recalls, freshness, confidence, relevance_floor, weights, recency_half_life"
            ),
        ),
        (12, "memory_layer.recall_policy.confidence", 'expected a number, got the text "0.9"'),
        (14, "memory_layer.recall_policy.max_recalls", "expected a whole number, got the number 8.5"),
        (
            17,
            "memory_layer.memory_policy.ttl.wroking",
            f'expected one of {tiers}, got the text "wroking" (did you mean working?)',
        ),
        (
            18,
            "memory_layer.memory_policy.ttl.episodic",
            "expected a duration such as 30d, 4h, 15m, 90s or P30D, got the number 30",
        ),
        (
            20,
            "memory_layer.memory_policy.tier_routing.0",
            "is the last rule; expected one that matches everything (a tier without when)",
        ),
        (
            20,
            "memory_layer.memory_policy.tier_routing.0.when.source",
            'expected one of agent, operator, system, end_user, import, got the text "robot"',
        ),
        (
            23,
            "memory_layer.classes.preference.approval",
            "is auto while the risk is high; expected human, or risk low",
        ),
        (24, "memory_layer.trust.floor", "appears twice in one mapping; expected once"),
        (24, "memory_layer.trust.floor", "expected a number of at most 1, got 1.5"),
    ]


@pytest.mark.rule("PAC-1")
def test_an_unknown_key_is_reported_at_its_own_line_even_when_its_value_is_below():
    assert problems_of(HEAD + "\nsurprise:\n  - 1\n")[0][:2] == (3, "surprise")
    assert problems_of(HEAD + "\nsurprise:\n  1\n")[0][:2] == (3, "surprise")


@pytest.mark.rule("PAC-1")
def test_a_missing_key_is_reported_at_the_line_of_the_mapping_that_lacks_it():
    assert problems_of("\npack_meta:\n\n  version: 1.0.0\n") == [(2, "pack_meta.id", "is missing; expected it here")]
    assert problems_of("\n\nroles: {}\n") == [(3, "pack_meta", "is missing; expected it here")]


@pytest.mark.rule("PAC-1")
@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("", 1, "is empty"),
        ("# nothing but a comment\n", 1, "is empty"),
        ("null", 1, "is empty"),
        ("\n- a\n", 2, "expected a mapping that begins with pack_meta, got a list"),
        ("acme.pack.yaml", 1, "to read a file, pass a Path"),
        (b"pack_meta: 1\nroles: \xff\n", 2, "expected UTF-8 text"),
        (HEAD + "roles: \x00", 2, "holds the character U+0000"),
        (HEAD + "roles: \ud800", 2, "holds the character U+D800"),
        (HEAD + "roles:\n\tagent: {}", 3, "a tab where spaces belong"),
        (HEAD + "roles: {agent: {}", 2, "opened with '{' is not closed"),
        (HEAD + "roles: [agent", 2, "opened with '[' is not closed"),
        (HEAD + "roles: 'agent", 2, "a quoted text is not closed"),
        (HEAD + "roles: a: b", 2, "a second ':' in one value"),
        (HEAD + "roles:\n  a: 1\n b: 2", 4, "the indentation does not fit"),
        (HEAD + "roles: @agent", 2, "cannot begin with this character"),
        (HEAD + 'roles: "\\UFFFFFFFF"', 2, "out of range"),
        ("%YAML 1." + "9" * 5000 + "\n---\na: 1", 1, "out of range"),
        (HEAD + "...\n- a", 3, "continues after the end of the document"),
        (HEAD + "---\n" + HEAD, 2, "a second document begins"),
        (HEAD + "? [a]\n: 1", 2, "a mapping or list as a key"),
        (HEAD + "1: 2", 2, 'expected a text as key; write it as "1"'),
        (HEAD + "true: 2", 2, 'expected a text as key; write it as "true"'),
        (HEAD + "roles: &r {}\nontology: *r", 3, "an alias (*name) is not allowed"),
        (HEAD + "roles: &r {}\n*r : 1", 3, "an alias (*name) as a key"),
        (HEAD + "roles: !!python/object/apply:os.system [ls]", 2, "a tag ("),
        (HEAD + "memory_layer: {trust: {floor: !!float 1}}", 2, "a tag ("),
        (HEAD + "memory_layer: {trust: {floor: .nan}}", 2, "expected a finite number"),
        (HEAD + "memory_layer: {trust: {floor: 1e999}}", 2, "expected a finite number"),
        (HEAD + "memory_layer: {trust: {floor: " + "9" * 5000 + "}}", 2, "at most 18 digits"),
        (HEAD + "memory_layer: {trust: {floor: 010}}", 2, 'expected a number, got the text "010"'),
        (HEAD + "memory_layer: {trust: {floor: true}}", 2, "expected a number, got true"),
        (HEAD + "memory_layer: {recall_policy: {max_recalls: true}}", 2, "expected a whole number, got true"),
        (HEAD + "memory_layer:", 2, "expected a mapping, got nothing"),
        (HEAD + "memory_layer: {rejections: {remember: null}}", 2, "expected a duration"),
        (HEAD + "memory_layer: {rejections: {remember: P1Y}}", 2, "no fixed length"),
        ("pack_meta: {id: a, version: 2026-05-04}", 1, "expected MAJOR.MINOR.PATCH"),
        ("pack_meta: {id: a, version: 1.0.0+build}", 1, "expected MAJOR.MINOR.PATCH"),
        ("pack_meta: {id: a, version: 01.0.0}", 1, "expected MAJOR.MINOR.PATCH"),
        ('pack_meta: {id: "a\\n", version: 1.0.0}', 1, "expected a small letter"),
        (HEAD + 'identity: {classified_attributes: {a: {mask: "\\ud83d"}}}', 2, "half of a character"),
        ("[" * 100_000, 1, "is nested deeper"),
        ("{a: " * 100_000, 1, "is nested deeper"),
        ("- " * 100_000, 1, "is nested deeper"),
        ("- a\n" * (VALUE_LIMIT + 1), VALUE_LIMIT, "has more than"),
    ],
)
def test_a_text_that_is_no_pack_is_refused_in_plain_words_at_its_line(source: str | bytes, line: int, words: str):
    found = problems_of(source)

    assert [problem for problem in found if problem[0] == line and words in problem[2]], found
    assert not [problem for problem in found if "Input should" in problem[2] or problem[2][:1].isupper()]


def test_a_text_past_the_limit_is_refused_before_it_is_read():
    assert "is larger than" in problems_of("a" * (TEXT_LIMIT + 1))[0][2]
    assert "is larger than" in problems_of(b"a" * (TEXT_LIMIT + 1))[0][2]
    assert "is larger than" in problems_of("é" * (TEXT_LIMIT // 2 + 1))[0][2]


def test_a_problem_in_the_text_does_not_hide_the_others():
    found = problems_of(HEAD + "memory_layer: {trust: {floor: .nan}}\nroles: {agent: {sees: all}}\nroles: {}\n")

    assert [(line, path) for line, path, _ in found] == [
        (2, "memory_layer.trust.floor"),
        (3, "roles.agent.sees"),
        (4, "roles"),
    ]


def test_json_loads_however_it_is_laid_out():
    document = builtin_pack().document()
    document["identity"]["classified_attributes"] = {"note": {"mask": "[😀]"}}

    layouts: tuple[dict[str, Any], ...] = (
        {},
        {"indent": "\t"},
        {"indent": 2, "ensure_ascii": False},
        {"separators": (",", ":")},
    )
    packs = {load_pack(json.dumps(document, **layout)).digest for layout in layouts}
    assert len(packs) == 1
    assert problems_of('{"pack_meta":\n\t{"id": "a",\n\t "version": 1}}')[0][:2] == (3, "pack_meta.version")


def test_a_pack_is_read_from_a_file(tmp_path: Path):
    file = tmp_path / "acme.pack.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + HEAD.encode() + b"roles: {}\r\n")

    assert load_pack(file).ref == "acme.support@2.1.0"
    assert load_pack(file) == load_pack(file.read_bytes()) == load_pack(HEAD)


def test_a_file_that_cannot_be_read_is_a_refused_pack(tmp_path: Path):
    assert "no such file" in problems_of(tmp_path / "nowhere.yaml")[0][2]
    assert "is a directory" in problems_of(tmp_path)[0][2]
    assert "expected the path of a file" in problems_of(Path("a\x00b"))[0][2]


# --- whatever comes in


def loads_or_is_refused(source: str | bytes) -> None:
    try:
        pack = load_pack(source)
    except PackInvalid as refused:
        assert refused.problems
        assert str(refused)
    else:
        assert load_pack(json.dumps(pack.document())) == pack


_WORDS = sorted(
    {
        *json.dumps(builtin_pack().document()).replace('"', " ").replace(",", " ").replace(":", " ").split(),
        "auto",
        "high",
        "[key]",
        "",
        "1d",
    }
)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(_WORDS))
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(_WORDS), st.text(max_size=8)), inner, max_size=4),
    ),
    max_leaves=20,
)


@pytest.mark.rule("PAC-1")
@settings(deadline=None)
@given(_JSON)
def test_any_document_loads_or_is_refused_and_nothing_else(document: object):
    loads_or_is_refused(json.dumps(document))
    loads_or_is_refused(yaml.safe_dump(document, allow_unicode=True))


@st.composite
def _damaged_builtin(draw: st.DrawFn) -> object:
    """The built-in document with values replaced, added or taken away at a few places."""
    document = builtin_pack().document()
    for _ in range(draw(st.integers(1, 4))):
        holder: Any = document
        while True:
            if isinstance(holder, dict):
                keys = list(holder)
            elif isinstance(holder, list):
                keys = list(range(len(holder)))
            else:
                break
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if draw(st.integers(0, 3)) == 0 or not isinstance(holder[key], dict | list):
                action = draw(st.sampled_from(["replace", "drop", "add"]))
                if action == "drop":
                    del holder[key]
                elif action == "replace":
                    holder[key] = draw(_JSON)
                elif isinstance(holder, dict):
                    holder[draw(st.sampled_from(_WORDS))] = draw(_JSON)
                else:
                    holder.append(draw(_JSON))
                break
            holder = holder[key]
    return document


@pytest.mark.rule("PAC-1")
@settings(deadline=None)
@given(_damaged_builtin())
def test_a_damaged_pack_loads_or_is_refused_and_nothing_else(document: object):
    loads_or_is_refused(json.dumps(document))


@pytest.mark.rule("PAC-1")
@settings(deadline=None)
@given(st.one_of(st.text(), st.text(alphabet="{}[]:,-?&*!|>'\"%@#\\ \n\t~aUx0129.<"), st.binary()))
def test_any_text_loads_or_is_refused_and_nothing_else(source: str | bytes):
    loads_or_is_refused(source)
    if isinstance(source, str):
        loads_or_is_refused(HEAD + source)
