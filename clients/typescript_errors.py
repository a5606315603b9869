"""The errors of the TypeScript client: a class for each class of `muniment.errors`, with the same code and parent."""

from clients.typescript_text import HEADER, comment
from muniment import errors
from muniment.errors import MomentAmbiguous, MunimentError, PackInvalid, RateLimited

# What some have beside the rest.
_MORE: dict[type[MunimentError], str] = {
    PackInvalid: """
  /** Every error of the pack, each with its line. */
  get problems(): readonly PackProblem[] {
    return packProblems(this.problem);
  }
""",
    MomentAmbiguous: """
  /** The sequence numbers that the time may mean. */
  get numbers(): readonly number[] {
    return sequenceNumbers(this.problem);
  }
""",
    RateLimited: """
  /** Seconds after which to try again. */
  get wait(): number {
    return this.retryAfter ?? 1;
  }
""",
}


def error_classes() -> list[type[MunimentError]]:
    """Every error that has a code of its own, and their parents, each after its parent."""
    found = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, MunimentError)]
    return [one for one in found if one is not MunimentError]


def errors_module() -> str:
    """The text of errors.ts."""
    classes = error_classes()
    codes = [one for one in classes if "code" in vars(one)]
    entries = "".join(f"  [{one.__name__}.code, {one.__name__}],\n" for one in codes)
    union = "".join(f'\n  | "{one.code}"' for one in codes)
    return "".join(
        [
            HEADER,
            comment("Every error that a call can throw, each with a code that stays the same from release to release."),
            "\n",
            'import { MunimentError } from "../muniment-error.js";\n',
            'import { type PackProblem, packProblems, sequenceNumbers } from "../problem.js";\n\n',
            *(_class(one) for one in classes),
            "/** The codes that have a class; a newer server may have others. */\n",
            f"export type ErrorCode ={union};\n\n",
            "/** The class of each code. */\n",
            "export const errorClasses: ReadonlyMap<string, typeof MunimentError> = new Map<string, typeof "
            "MunimentError>([\n",
            entries,
            "]);\n",
        ]
    )


def _class(one: type[MunimentError]) -> str:
    code = f'  static override readonly code: string = "{one.code}";\n\n' if "code" in vars(one) else ""
    return (
        f"{comment(one.__doc__ or '')}export class {one.__name__} extends {one.__bases__[0].__name__} {{\n{code}"
        f'  static {{\n    this.prototype.name = "{one.__name__}";\n  }}\n{_MORE.get(one, "")}}}\n\n'
    )
