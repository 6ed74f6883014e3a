"""The API and the pages, served by one ASGI server."""
