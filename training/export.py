"""Writes a trained encoder as an int8 ONNX graph that onnxruntime runs on the CPU."""

import tempfile
from pathlib import Path

import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn

from training.encoder import Encoder

INPUTS = ("words", "mask", "types")


class _Probabilities(nn.Module):
    """The encoder with probabilities instead of logits; a head of two classes gives that of the second alone."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, words: Tensor, mask: Tensor, types: Tensor) -> tuple[Tensor, ...]:
        logits = self.encoder(words, mask, types)
        return tuple(
            scores.softmax(-1)[..., 1] if len(head.classes) == 2 else scores.softmax(-1)
            for head, scores in zip(self.encoder.heads, logits, strict=True)
        )


def export(encoder: Encoder, path: Path) -> None:
    """Write the graph; its inputs are `INPUTS`, its outputs are named after the heads.

    Weights have seven bits (`reduce_range`): with eight, processors without VNNI overflow and would score differently.
    """
    encoder = encoder.cpu().float().eval()
    batch, length = torch.export.Dim("batch"), torch.export.Dim("tokens")
    axes = {0: batch, 1: length}
    sample = (torch.randn(2, 16, 384), torch.ones(2, 16, dtype=torch.int64), torch.zeros(2, 16, dtype=torch.int64))
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "whole.onnx")
        torch.onnx.export(
            _Probabilities(encoder),
            sample,
            str(whole),
            input_names=list(INPUTS),
            output_names=[head.name for head in encoder.heads],
            dynamic_shapes=(axes, axes, axes),
            dynamo=True,
            external_data=False,
        )
        graph = onnx.load(whole)
        # The exporter's own shapes are those before its optimisations and would stop the quantisation.
        graph.graph.ClearField("value_info")
        quantize_dynamic(graph, path, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
