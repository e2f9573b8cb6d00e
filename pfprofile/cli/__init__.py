"""The command line. One module a command; heavy libraries are imported inside the functions that need them."""

from pfprofile.cli._app import app

__all__ = ["app"]
