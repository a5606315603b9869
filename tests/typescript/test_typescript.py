"""The TypeScript client, as far as it can be looked at without Node.js; `make test-typescript` does the rest."""

import json
import re
from pathlib import Path

import pytest
from clients import generate, node, typescript_errors, typescript_verbs
from clients.typescript_text import camel, comment, group

from muniment import __version__
from muniment.client import Client
from muniment.errors import MunimentError
from muniment.http.app import openapi_document
from muniment.verbs.registry import GROUPS, verbs

CLIENT = generate.TYPESCRIPT
EXAMPLES = CLIENT / "examples"
PAGE = (generate.ROOT / "docs" / "how-to" / "use-from-typescript.md").read_text("utf-8")
README = (CLIENT / "README.md").read_text("utf-8")


def _blocks(text: str) -> list[str]:
    return re.findall(r"^```ts\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_generated_files_are_what_the_declarations_give_now() -> None:
    assert generate.stale() == [], "run make generate"


def test_a_file_that_differs_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    found = generate.files()
    path = CLIENT / "src" / "generated" / "verbs.ts"
    monkeypatch.setattr(generate, "files", lambda: found | {path: found[path] + "\n"})
    assert generate.stale() == ["clients/typescript/src/generated/verbs.ts"]


def test_types_of_another_document_are_stale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    schema = tmp_path / "schema.ts"
    schema.write_text("// Generated\n// sha256 of openapi.json: 00\n", "utf-8")
    monkeypatch.setattr(generate, "SCHEMA", schema)
    assert generate.stale() == ["clients/typescript/src/generated/schema.ts"]


def test_another_version_of_the_project_makes_the_package_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "__version__", "9.9.9")
    names = ["package.json", "package-lock.json", "src/generated/version.ts"]
    assert set(generate.stale()) == {f"clients/typescript/{name}" for name in names}


def test_every_verb_of_the_python_client_is_a_method_of_the_same_group() -> None:
    text = typescript_verbs.verbs_module(openapi_document())
    bodies = dict(re.findall(r"^export class (\w+) extends VerbGroup \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE))
    served = [one for one in verbs().values() if one.method is not None]
    assert len(served) > 90
    for one in served:
        assert hasattr(Client, one.group or one.verb)
        body = bodies[GROUPS[one.group].class_name if one.group else "Verbs"]
        assert re.search(rf"^  (async )?{camel(one.verb)}\(", body, re.MULTILINE), one.name
        assert f'"/v1{one.path}"' in body or f"`/v1{one.path.partition('{')[0]}" in body


def test_every_error_has_a_class_with_its_code_and_its_parent() -> None:
    text = typescript_errors.errors_module()
    for one in typescript_errors.error_classes():
        assert f"export class {one.__name__} extends {one.__bases__[0].__name__} {{" in text
        if "code" in vars(one):
            assert f'= "{one.code}";' in text and f"  [{one.__name__}.code, {one.__name__}]," in text
    assert MunimentError not in typescript_errors.error_classes()


def test_a_type_with_the_name_of_an_error_needs_a_name_of_its_own() -> None:
    assert typescript_verbs.type_name("LeftOut") == "LeftOutProposal"
    with pytest.raises(ValueError, match="NotFound has the name of an error"):
        typescript_verbs.type_name("NotFound")


def test_text_is_written_as_the_formatter_would() -> None:
    assert comment("One line.") == "/** One line. */\n"
    assert comment("No */ end.") == "/** No *\\/ end. */\n"
    assert comment("word " * 30).startswith("/**\n * word word")
    assert group("f", ["a", "b"], ";", "") == "f(a, b);"
    assert group("f", ["a" * 80, "b" * 80], ";", "") == f"f(\n  {'a' * 80},\n  {'b' * 80},\n);"


def test_every_field_of_an_answer_is_required_in_the_document() -> None:
    schemas = openapi_document()["components"]["schemas"]
    for name in ("Submission", "Recall", "Page_Proposal_"):
        assert set(schemas[name]["required"]) == set(schemas[name]["properties"])
    # A request may leave out what has a default.
    assert schemas["ProposalBody"]["required"] == ["classification", "write_class"]
    assert "Problem" in schemas


def test_the_package_has_the_version_and_the_licence_of_the_project() -> None:
    told = json.loads((CLIENT / "package.json").read_text("utf-8"))
    locked = json.loads((CLIENT / "package-lock.json").read_text("utf-8"))
    assert told["version"] == locked["version"] == locked["packages"][""]["version"] == __version__
    assert told["license"] == "Apache-2.0" and "dependencies" not in told
    assert (CLIENT / "LICENSE").read_bytes() == (generate.ROOT / "LICENSE").read_bytes()
    assert told["engines"]["node"] == f">={node.OLDEST}"
    # Each place has its own mirror: packages are known by their hashes alone.
    assert all("integrity" in one and "resolved" not in one for name, one in locked["packages"].items() if name)


@pytest.mark.parametrize("name", ["first-memory", "follow-events", "vercel-ai-sdk"])
def test_the_page_shows_the_examples_as_they_are_in_their_files(name: str) -> None:
    example = (EXAMPLES / f"{name}.ts").read_text("utf-8")
    assert any(example.endswith(f"*/\n\n{block}") for block in _blocks(PAGE))


def test_the_page_of_the_package_shows_the_first_example_as_it_is_in_its_file() -> None:
    example = (EXAMPLES / "first-memory.ts").read_text("utf-8")
    assert example.endswith(f"*/\n\n{_blocks(README)[0]}")


def test_without_node_the_tests_are_reported_as_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from clients import check

    monkeypatch.setattr(node, "_candidates", list[node.Node])
    assert check.main() == 0
    assert capsys.readouterr().out == (
        "not run: the tests of the TypeScript client (there is no Node.js 20 or newer with npm)\n"
    )


def test_a_node_that_is_too_old_or_does_not_start_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "npm-cli.js").touch()

    def made(name: str, says: str) -> node.Node:
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {says}\n", "utf-8")
        program.chmod(0o755)
        return node.Node(program, (tmp_path / "npm-cli.js",))

    without_npm = node.Node(made("alone", "v24.1.0").program, (tmp_path / "none",))
    gone = node.Node(tmp_path / "none", (tmp_path / "npm-cli.js",))
    found = [gone, without_npm, made("old", "v18.20.1"), made("odd", "what"), made("new", "v22.1.0")]
    monkeypatch.setattr(node, "_candidates", lambda: found)
    assert node.find().program.name == "new"
