"""`python -m training base|pairs|guard|tagger|average`: prepare the base encoder, train a reader, average several."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.base import prepare_base

if TYPE_CHECKING:
    from training.encoder import Encoder


def main() -> None:
    """Read the command line and do what it names."""
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    base = commands.add_parser("base", help="prepare the base encoder")
    base.add_argument("--encoder", type=Path, required=True, help="folder with model.safetensors and tokenizer.json")
    base.add_argument("--out", type=Path, required=True)
    for name in ("pairs", "guard", "tagger"):
        reader = commands.add_parser(name, help=f"train and export the reader {name}")
        reader.add_argument("--base", type=Path, required=True, help="folder that `base` wrote")
        reader.add_argument("--rows", type=Path, required=True, help="file that the reader's data command wrote")
        reader.add_argument("--out", type=Path, required=True, help="folder for the ONNX file")
        reader.add_argument("--seed", type=int)
        reader.add_argument("--epochs", type=int)
        reader.add_argument("--batch", type=int, help="examples in a step")
        reader.add_argument("--dropout", type=float, help="less for fewer epochs")
        reader.add_argument("--rate", type=float, help="learning rate of the trunk; its heads learn faster")
    average = commands.add_parser("average", help="export the mean of several trainings of one reader")
    average.add_argument("reader", choices=("pairs", "guard", "tagger"))
    average.add_argument("trained", type=Path, nargs="+", help="folders that the trainings wrote")
    average.add_argument("--out", type=Path, required=True, help="folder for the ONNX file")
    options = parser.parse_args()
    if options.command == "base":
        prepare_base(options.encoder, options.out)
    elif options.command == "average":
        _average(options.reader, options.trained, options.out)
    else:
        changes = {name: getattr(options, name) for name in ("seed", "epochs", "batch", "dropout", "rate")}
        given = {name: value for name, value in changes.items() if value is not None}
        _train(options.command, options.base, options.rows, options.out, given)


def _train(name: str, base: Path, rows: Path, out: Path, changes: dict[str, Any]) -> None:
    # Imported here so that preparing the base and its data needs no torch.
    from dataclasses import replace

    from safetensors.torch import save_file

    from training.loop import train
    from training.tasks import TASKS, open_tokenizer, read_rows

    task = TASKS[name]
    tokenizer = open_tokenizer(base, task)
    examples = [task.example(row, tokenizer, task) for row in read_rows(rows)]
    print(f"{name}: {len(examples)} examples", flush=True)
    trained = train(task.heads, examples, base, replace(task.plan, **changes), lambda line: print(line, flush=True))
    out.mkdir(parents=True, exist_ok=True)
    save_file(trained.encoder.half().state_dict(), out / f"{name}.safetensors")
    _export(trained.encoder, out, name)


def _average(name: str, folders: list[Path], out: Path) -> None:
    """Export the encoder whose every weight is the mean of those of several trainings from the same start.

    The mean of trainings that saw the rows in another order is better than most of them alone.
    """
    from safetensors.torch import load_file

    from training.encoder import Encoder
    from training.tasks import TASKS

    states = [load_file(folder / f"{name}.safetensors") for folder in folders]
    encoder = Encoder(TASKS[name].heads)
    encoder.load_state_dict({key: sum(state[key].float() for state in states) / len(states) for key in states[0]})
    _export(encoder, out, name)


def _export(encoder: "Encoder", out: Path, name: str) -> None:
    from training.export import export

    out.mkdir(parents=True, exist_ok=True)
    export(encoder, out / f"{name}.onnx")
    print(f"{name}: wrote {out / f'{name}.onnx'}", flush=True)


main()
