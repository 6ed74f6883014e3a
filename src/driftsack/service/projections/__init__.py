"""Views derived from the journal: the dashboard's data, drift, explanations, exports, metrics, what-if."""
