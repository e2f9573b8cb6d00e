"""Record the shipped CPU profile on this machine: ``python profiles/record_cpu.py`` from the root of the repository.

Runs our own sweep into its default output, ``profiles/<cpu>/resnet18.parquet``, and takes the machine's name out.
"""

from __future__ import annotations

import subprocess
import sys

from pfprofile.device import open_device
from pfprofile.profile import read_profile, write_profile
from pfprofile.profile.places import default_profile_path

SWEEP = (
    "sweep", "resnet18", "--device", "cpu", "--gpus", "1,2", "--batch-sizes", "1,2,4,8,16", "--image-size", "32",
    "--repeats", "3", "--seed", "1",
)  # fmt: skip


def main() -> None:
    """Sweep and anonymise."""
    subprocess.run([sys.executable, "-m", "pfprofile", *SWEEP], check=True)
    path = default_profile_path(open_device("cpu").name, "resnet18")
    profile = read_profile(path)
    write_profile(type(profile)(profile.table, profile.metadata.with_(host=None)), path)


if __name__ == "__main__":
    main()
