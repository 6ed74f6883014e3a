"""The API: routes, keys, limits, errors, and the OpenAPI document."""
