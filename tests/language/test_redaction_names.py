"""Names of persons and places: an extra that is loaded only where a rule asks for it, and never asks the network."""

import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from muniment.errors import PackInvalid
from muniment.language.redaction import redactor_of
from muniment.pack import Pack, builtin_pack

pytestmark = pytest.mark.filterwarnings("ignore")


def asking(*rules: dict[str, Any]) -> Pack:
    return Pack.model_validate(
        {
            "pack_meta": {"id": "names.test", "version": "1.0.0"},
            "policy_layer": {"guardrails": {"redaction_rules": list(rules)}},
        }
    )


@pytest.fixture
def pipeline(tmp_path: Path) -> str:
    nlp: Any = import_module("spacy").blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns(
        [
            {"label": "PERSON", "pattern": "Ada Lovelace"},
            {"label": "GPE", "pattern": "London"},
        ]
    )
    nlp.to_disk(tmp_path / "pipeline")
    return str(tmp_path / "pipeline")


@pytest.mark.rule("RED-1")
def test_persons_and_places_are_masked_where_a_rule_asks_and_the_network_is_never_asked(
    pipeline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    redactor = redactor_of(
        asking(
            {"name": "person", "detector": "person", "model": pipeline},
            {"name": "location", "detector": "location", "model": pipeline, "mask": "[PLACE]"},
        )
    )
    done = redactor.text("Ada Lovelace of London, ada@example.com")
    assert done.content == "[PERSON] of [PLACE], [EMAIL]"
    assert done.counts == {"person": 1, "location": 1, "email": 1}
    again = redactor.text(done.content)
    assert (again.content, again.counts) == (done.content, {})


def test_a_pipeline_that_is_not_installed_is_reported_and_not_fetched() -> None:
    with pytest.raises(PackInvalid) as refused:
        redactor_of(asking({"name": "person", "detector": "person", "model": "xx_no_such_pipeline"}))
    (problem,) = refused.value.problems
    assert problem.path == "policy_layer.guardrails.redaction_rules.0.model"
    assert "xx_no_such_pipeline" in problem.message


def test_a_rule_that_needs_the_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.language.redaction.detectors.names.find_spec", lambda _: None)
    with pytest.raises(PackInvalid) as refused:
        redactor_of(asking({"name": "order", "pattern": "ORD", "mask": "x"}, {"name": "person", "detector": "person"}))
    (problem,) = refused.value.problems
    assert problem.path == "policy_layer.guardrails.redaction_rules.1.detector"
    assert "muniment[presidio]" in problem.message


def test_a_rule_that_is_turned_off_needs_no_extra() -> None:
    redactor = redactor_of(asking({"name": "person", "detector": "person", "enabled": False}))
    assert redactor.text("Ada Lovelace").counts == {}


def test_nothing_of_the_extra_is_imported_for_a_pack_without_such_a_rule() -> None:
    program = """
import sys
from muniment.pack import builtin_pack
from muniment.language.redaction import redactor_of
redactor_of(builtin_pack()).text("call +44 20 7946 0958 or write to ada@example.com")
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"presidio_analyzer", "spacy", "tldextract", "thinc"}, loaded
assert "muniment.language.redaction.detectors.names" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_names_are_not_sought_by_the_built_in_pack() -> None:
    named = {rule.detector for rule in builtin_pack().policy_layer.guardrails.redaction_rules}
    assert named.isdisjoint({"person", "location", "url"})
