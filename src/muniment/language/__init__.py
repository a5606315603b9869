"""Reads text; knows neither storage nor policy. Pure, but for embedders and readers that call a server or run a model.

embedding      texts into vectors, and the tokenizers that count tokens
words          a text into the terms that it is indexed and found by
name_search    whether a text holds a name, however it is written
assertion      whether two texts say the same or contradict one another
redaction      masks personal data
instructions   detects text that addresses the model; resolves disguised characters
messages       what people state of themselves in messages
readers        trained readers beside the rules: a judge of pairs, a guard, a tagger
data_files     reads the word lists and patterns that are kept as text files
patterns       regular expressions in linear time (RE2)
"""
