"""The words and the version of the profile format, apart from its Arrow schema (so that they load without pyarrow)."""

from __future__ import annotations

FORMAT_VERSION = 1
METADATA_KEY = b"pfprofile"

STATUSES = ("ok", "oom", "timeout", "failed")
LIMITS = ("none", "power", "thermal", "hardware", "unknown")
SOURCES = ("measured", "synthetic", "imported")
