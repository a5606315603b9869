"""Consents and proposals as documents on the command line: taken as they stand, and given back the same."""

import json
from pathlib import Path
from typing import get_args

import pytest

from muniment.model.fields import WriteClass
from tests.interfaces.command import Terminal
from tests.transfer.test_documents import CONSENT, PROPOSAL


@pytest.mark.rule("CON-8")
@pytest.mark.rule("REV-10")
def test_both_documents_are_the_same_on_the_command_line(terminal: Terminal, tenant: str, tmp_path: Path) -> None:
    (file := tmp_path / "consents.json").write_text(json.dumps(CONSENT | {"tenant_id": tenant}))
    (found,) = terminal.json("consent", "import", file)
    assert found["recorded"] and found["place"] == "document 1"
    assert terminal.json("consent", "document", CONSENT["consent_id"]) == CONSENT | {"tenant_id": tenant}
    wrong = [CONSENT | {"tenant_id": tenant, "consent_id": "cns_2", "basis": ""}, CONSENT]
    (lines := tmp_path / "lines.jsonl").write_text("\n".join(json.dumps(one) for one in wrong))
    ran = terminal("consent", "import", lines, "--each")
    assert ran.code == 1 and "line 1: basis" in ran.out and "line 2: tenant_id" in ran.out
    (file := tmp_path / "proposal.json").write_text(json.dumps(PROPOSAL))
    done = terminal.json("propose", "--document", file, "--as", "bot", "--kind", "agent")
    assert done["proposal_id"] == PROPOSAL["proposal_id"]
    assert terminal.json("queue", "document", done["proposal_id"])["candidate"] == PROPOSAL["candidate"]


@pytest.mark.rule("CON-8")
def test_a_purpose_that_no_class_names_is_not_imported_unless_that_is_wanted(
    terminal: Terminal, tenant: str, tmp_path: Path
) -> None:
    classes = "".join(f"    {name}: {{consent_purposes: [care]}}\n" for name in get_args(WriteClass))
    pack = f'pack_meta: {{id: acme, version: "1.0.0"}}\nmemory_layer:\n  classes:\n{classes}'
    (named := tmp_path / "pack.yaml").write_text(pack)
    terminal.json("pack", "register", named)
    terminal.json("pack", "activate", "acme@1.0.0", "--reason", "care alone")
    other = CONSENT | {"tenant_id": tenant, "purpose": "newsletter"}
    (file := tmp_path / "consents.json").write_text(json.dumps(other))
    ran = terminal("consent", "import", file)
    assert ran.code == 1 and "document 1: purpose: no class of the pack in force names it; expected care" in ran.out
    assert terminal.json("consent", "list") == []
    (found,) = terminal.json("consent", "import", file, "--any-purpose")
    assert found["recorded"] and terminal.json("consent", "list")[0]["purpose"] == "newsletter"
