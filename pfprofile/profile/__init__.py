"""The Parquet profile: schema, read, write, merge, import."""

from pfprofile.profile.data import Profile
from pfprofile.profile.io import read_profile, write_profile
from pfprofile.profile.metadata import ProfileMetadata, WorkloadFacts

__all__ = ["Profile", "ProfileMetadata", "WorkloadFacts", "read_profile", "write_profile"]
