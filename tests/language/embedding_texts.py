"""Vectors that are known in advance, and texts that no message may reveal."""

import numpy as np

SECRET_TEXT = "Jane Doe owes 4711 pounds"
KEY = "sk-very-secret-0815"


def vector(text: str) -> list[float]:
    """Another direction for every length."""
    return [float(len(text)), 1.0, 0.0]


def unit(text: str) -> list[float]:
    return (np.array(vector(text)) / np.linalg.norm(vector(text))).tolist()
