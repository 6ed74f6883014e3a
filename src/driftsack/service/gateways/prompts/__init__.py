"""Prompts as contexts: what a request to a language model is about, as the features of a campaign."""
