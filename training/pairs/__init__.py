"""The training data of the judge of pairs: which of two statements contradicts or entails the other."""
