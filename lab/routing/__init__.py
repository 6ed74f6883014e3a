"""Routing prompts beside other routers."""
