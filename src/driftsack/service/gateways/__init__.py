"""Gateways to language models that use the service: the proxy and the LiteLLM plugin."""
