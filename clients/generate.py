"""Writes the generated files of the clients: `python -m clients.generate` (`make generate`).

| file of clients/typescript | what it holds |
|---|---|
| openapi.json | the document that the server answers at `/openapi.json` |
| src/generated/types.ts | names for the types of schema.ts |
| src/generated/verbs.ts | every verb that is served, in its group |
| src/generated/errors.ts | a class for each error code |
| src/generated/version.ts | the version of the project |
| package.json, package-lock.json | the same version; the rest of them is written by hand and by npm |

`src/generated/schema.ts` is made from openapi.json by openapi-typescript (`npm run generate`), where Node.js is.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from clients import node, typescript_errors, typescript_verbs
from clients.typescript_text import HEADER
from muniment import __version__
from muniment.http.app import openapi_document

ROOT = Path(__file__).parents[1]
TYPESCRIPT = ROOT / "clients" / "typescript"
SCHEMA = TYPESCRIPT / "src" / "generated" / "schema.ts"
_NAME_OF_SCHEMA = SCHEMA.relative_to(ROOT).as_posix()


def files() -> dict[Path, str]:
    """Every generated file with what it is to hold."""
    document = openapi_document()
    generated = TYPESCRIPT / "src" / "generated"
    return {
        TYPESCRIPT / "openapi.json": document_text(document),
        generated / "types.ts": typescript_verbs.types_module(document),
        generated / "verbs.ts": typescript_verbs.verbs_module(document),
        generated / "errors.ts": typescript_errors.errors_module(),
        generated / "version.ts": f'{HEADER}\nexport const VERSION = "{__version__}";\n',
        **{path: _with_version(path) for path in (TYPESCRIPT / "package.json", TYPESCRIPT / "package-lock.json")},
    }


def document_text(document: dict[str, Any]) -> str:
    """The document as its file has it."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _with_version(path: Path) -> str:
    """A file of npm's with the version of the project, written as npm does."""
    told = json.loads(path.read_text("utf-8"))
    told["version"] = __version__
    if "packages" in told:
        told["packages"][""]["version"] = __version__
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def stale() -> list[str]:
    """The names of the generated files that do not hold what they are to."""
    found = [path for path, text in files().items() if not path.is_file() or path.read_text("utf-8") != text]
    return [path.relative_to(ROOT).as_posix() for path in found] + ([] if _schema_is_current() else [_NAME_OF_SCHEMA])


def _schema_is_current() -> bool:
    """Whether schema.ts was made from openapi.json as it is: its second line has the hash."""
    mark = sha256((TYPESCRIPT / "openapi.json").read_bytes()).hexdigest()
    return mark in SCHEMA.read_text("utf-8").split("\n")[1]


def main() -> None:
    """Write the files."""
    for path, text in files().items():
        path.write_text(text, "utf-8")
    if _schema_is_current():
        return
    try:
        found = node.find()
        found.install(TYPESCRIPT)
    except node.NotRun as missing:
        sys.exit(f"{_NAME_OF_SCHEMA} is stale and was not written: {missing}")
    sys.exit(found.npm(TYPESCRIPT, "run", "--silent", "generate").returncode)


if __name__ == "__main__":
    main()
