"""Speed comparisons: what ``python -m lab speed`` and ``versions`` measure."""
