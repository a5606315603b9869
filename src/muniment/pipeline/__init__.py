"""The pipeline, a file per stage, in order: capture, candidate, review, promote, recall.

No stage imports another: what flows between them are the types of `model`, and the fabric puts them together.
"""
