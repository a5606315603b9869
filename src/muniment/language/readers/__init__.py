"""Trained readers of text: small encoders that run beside the rules, where the package muniment-models is installed.

weights    the files of the readers: their manifest and hashes
encoding   texts as the graphs take them: tokens, word vectors, windows
graph      runs one reader's graph with onnxruntime
pairs      the judge of pairs; guard: instructions and worth; tagger: personal data and special categories
readers    all three together: loaded once, on threads, with a cache and a time limit
serving    what the readers' process of a server answers; remote: the readers of a process that asks it
frames     what the two send each other

The readers' version is named by the hash of their manifest (CAN-15). Without the package the rules alone read text.
"""

from muniment.language.readers.guard import GuardScores
from muniment.language.readers.pairs import PairScores
from muniment.language.readers.readers import RULES, BrokenReaders, Readers, find_readers
from muniment.language.readers.tagger import Tag
from muniment.language.readers.weights import Weights

__all__ = ["RULES", "BrokenReaders", "GuardScores", "PairScores", "Readers", "Tag", "Weights", "find_readers"]
