"""Speed, measured side by side: what ``driftsack bench`` prints."""
