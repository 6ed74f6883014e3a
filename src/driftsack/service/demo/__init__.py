"""The demonstration: a service with a simulated week of requests to language models."""
