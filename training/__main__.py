"""`python -m training COMMAND`: trains the readers, and makes of them the weights that are shipped.

base                    the encoder that training starts from
pairs, guard, tagger    train and export a reader; average: the mean of several trainings of one
prefilter               the same for the small encoder that leaves out pairs before the judge reads them
manifest                the weights' folder: the readers' files with their hashes, and what they were made of
thresholds              chosen on development data, written into the manifest
report                  figures on what nothing was trained or chosen on, written into the model cards
golden                  the scores that a test expects of the weights
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from training.encoder import Encoder

_ROOT = Path(__file__).parents[1]
WEIGHTS = _ROOT / "models" / "src" / "muniment_models" / "weights"
CARDS = _ROOT / "models" / "cards"
GOLDEN = _ROOT / "tests" / "language" / "golden_readers.json"
_READERS = ("pairs", "prefilter", "guard", "tagger")
_PLAN = ("seed", "epochs", "batch", "dropout", "rate", "layers")


def main() -> None:
    """Read the command line and do what it names."""
    options = _parser().parse_args()
    _COMMANDS[options.command](options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    base = commands.add_parser("base", help="prepare the base encoder")
    base.add_argument("--encoder", type=Path, required=True, help="folder with model.safetensors and tokenizer.json")
    base.add_argument("--out", type=Path, required=True)
    for name in _READERS:
        reader = commands.add_parser(name, help=f"train and export the reader {name}")
        reader.add_argument("--base", type=Path, required=True, help="folder that `base` wrote")
        reader.add_argument("--rows", type=Path, required=True, help="file that the reader's data command wrote")
        reader.add_argument("--out", type=Path, required=True, help="folder for the ONNX file")
        reader.add_argument("--seed", type=int)
        reader.add_argument("--epochs", type=int)
        reader.add_argument("--batch", type=int, help="examples in a step")
        reader.add_argument("--dropout", type=float, help="less for fewer epochs")
        reader.add_argument("--rate", type=float, help="learning rate of the trunk; its heads learn faster")
        reader.add_argument("--layers", type=int, help="layers of the encoder, of the six that the base has")
    average = commands.add_parser("average", help="export the mean of several trainings of one reader")
    average.add_argument("reader", choices=_READERS)
    average.add_argument("trained", type=Path, nargs="+", help="folders that the trainings wrote")
    average.add_argument("--out", type=Path, required=True, help="folder for the ONNX file")
    manifest = commands.add_parser("manifest", help="put the weights' folder together")
    manifest.add_argument("--base", type=Path, required=True, help="folder that `base` wrote")
    manifest.add_argument("--trained", type=Path, nargs="+", required=True, help="folders that the trainings wrote")
    manifest.add_argument("--out", type=Path, default=WEIGHTS)
    manifest.add_argument("--margin", type=float, help="how far scores may differ between processors")
    for name, words in (("thresholds", "choose the thresholds"), ("report", "write the figures into the model cards")):
        measured = commands.add_parser(name, help=words)
        measured.add_argument("--inputs", type=Path, required=True, help="the folder with training/ and data/")
        measured.add_argument("--weights", type=Path, default=WEIGHTS)
        if name == "report":
            measured.add_argument("--cards", type=Path, default=CARDS)
    golden = commands.add_parser("golden", help="write the scores that a test expects")
    golden.add_argument("--weights", type=Path, default=WEIGHTS)
    golden.add_argument("--out", type=Path, default=GOLDEN)
    return parser


# Each command imports what it needs: only training itself needs torch.
def _base(options: argparse.Namespace) -> None:
    from training.base import prepare_base

    prepare_base(options.encoder, options.out)


def _train(options: argparse.Namespace) -> None:
    from dataclasses import asdict, replace

    from safetensors.torch import save_file

    from training.loop import train
    from training.record import training_record, write_record
    from training.tasks import TASKS, open_tokenizer, read_rows

    name, out = options.command, options.out
    task = TASKS[name]
    given = {one: getattr(options, one) for one in _PLAN if getattr(options, one) is not None}
    plan = replace(task.plan, **given)
    tokenizer = open_tokenizer(options.base, task)
    examples = [task.example(row, tokenizer, task) for row in read_rows(options.rows)]
    _print(f"{name}: {len(examples)} examples")
    trained = train(task.reader.heads, examples, options.base, plan, _print)
    out.mkdir(parents=True, exist_ok=True)
    save_file(trained.encoder.half().state_dict(), out / f"{name}.safetensors")
    write_record(out, name, training_record(options.base, options.rows, len(examples), asdict(plan)))
    _export(trained.encoder, out, name)


def _average(options: argparse.Namespace) -> None:
    """Export the encoder whose every weight is the mean of those of several trainings from the same start.

    The mean of trainings that saw the rows in another order is better than most of them alone.
    """
    from safetensors.torch import load_file

    from training.encoder import Encoder
    from training.record import mean_record, read_record, write_record
    from training.tasks import TASKS

    name, out = options.reader, options.out
    states = [load_file(folder / f"{name}.safetensors") for folder in options.trained]
    records = [read_record(folder, name) for folder in options.trained]
    encoder = Encoder(TASKS[name].reader.heads, records[0]["plan"]["layers"])
    encoder.load_state_dict({key: sum(state[key].float() for state in states) / len(states) for key in states[0]})
    out.mkdir(parents=True, exist_ok=True)
    write_record(out, name, mean_record(records))
    _export(encoder, out, name)


def _export(encoder: "Encoder", out: Path, name: str) -> None:
    from training.export import export

    export(encoder, out / f"{name}.onnx")
    _print(f"{name}: wrote {out / f'{name}.onnx'}")


def _manifest(options: argparse.Namespace) -> None:
    from training.manifest import MARGIN, build

    margin = MARGIN if options.margin is None else options.margin
    _print(build(options.base, options.trained, options.out, margin).version)


def _thresholds(options: argparse.Namespace) -> None:
    from training.thresholds import choose_all

    choose_all(options.weights, options.inputs, _print)


def _report(options: argparse.Namespace) -> None:
    from training.cards import write_cards
    from training.manifest import read_manifest
    from training.report import report, write_figures

    figures = report(options.weights, options.inputs)
    write_figures(options.cards / "figures.json", figures)
    write_cards(options.cards, read_manifest(options.weights), figures)


def _golden(options: argparse.Namespace) -> None:
    from training.golden import write_golden

    write_golden(options.weights, options.out)


def _print(line: str) -> None:
    print(line, file=sys.stdout, flush=True)


_COMMANDS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "base": _base,
    "average": _average,
    "manifest": _manifest,
    "thresholds": _thresholds,
    "report": _report,
    "golden": _golden,
} | dict.fromkeys(_READERS, _train)

if __name__ == "__main__":
    main()
