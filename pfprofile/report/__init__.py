"""Pictures: one self-contained HTML page of profiles, models, schedules and comparisons."""

from pfprofile.report.artifact import Artifact, Kind, find_artifact, read_artifact
from pfprofile.report.build import build_report, write_report

__all__ = ["Artifact", "Kind", "build_report", "find_artifact", "read_artifact", "write_report"]
