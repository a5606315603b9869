"""The pipeline: five stages, a file each, in order: capture, candidate, review, promote, recall.

No stage imports another: what flows between them are the types of `model`, and the fabric puts them together. Beside
the stages: `neighbours` and `rejections`, what a candidate is compared with, and `tombstone`, which takes content away
when consent ended.
"""
