"""The demo: the service with a simulated week of requests to language models."""
