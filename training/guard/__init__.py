"""The training data of the guard: which texts address the model, and which sentences are worth knowing later."""
