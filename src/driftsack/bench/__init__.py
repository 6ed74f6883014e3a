"""Speed comparisons: what ``driftsack bench`` measures and prints."""
