"""Writes the generated files of the clients: `python -m clients.generate` (`make generate`).

| file of clients/typescript | what it holds |
|---|---|
| openapi.json | the document that the server answers at `/openapi.json` |
| src/generated/types.ts | names for the types of schema.ts |
| src/generated/verbs.ts | every verb that is served, in its group |
| src/generated/errors.ts | a class for each error code |
| src/generated/version.ts | the version of the package, from pyproject.toml |

`src/generated/schema.ts` is made from openapi.json by a generator in Node: `npm run generate`.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

from clients import typescript_errors, typescript_verbs
from clients.typescript_text import HEADER
from muniment.http.app import openapi_document

ROOT = Path(__file__).parents[1]
TYPESCRIPT = ROOT / "clients" / "typescript"


def files() -> dict[Path, str]:
    """Every generated file with what it is to hold."""
    document = openapi_document()
    generated = TYPESCRIPT / "src" / "generated"
    return {
        TYPESCRIPT / "openapi.json": document_text(document),
        generated / "types.ts": typescript_verbs.types_module(document),
        generated / "verbs.ts": typescript_verbs.verbs_module(document),
        generated / "errors.ts": typescript_errors.errors_module(),
        generated / "version.ts": f'{HEADER}\nexport const VERSION = "{version()}";\n',
    }


def document_text(document: dict[str, Any]) -> str:
    """The document as its file has it."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def version() -> str:
    """The version of the project."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def main() -> None:
    """Write the files."""
    for path, text in files().items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
