"""The paper's experiments and claims, as data and pure functions."""
