"""Every importer on mangled files: one line that says what is wrong, or a valid profile; never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pfprofile.errors import PfprofileError
from pfprofile.profile.importers import ImportOptions, importer
from pfprofile.profile.rows import doubts_of

FIXTURES = Path(__file__).parents[1] / "fixtures" / "imports"
ASKED = ("workload=toy", "local_batch=8")
#: format, file, how many of its lines (speed), the options that lead to a profile
CASES = {
    "nvidia-smi": ("nvidia-smi.csv", 11, ImportOptions(constants=ASKED, steps=10)),
    "nvidia-smi-trimmed": ("nvidia-smi.csv", 26, ImportOptions(constants=ASKED, trim=True, start="1s", gpu_ids="0")),
    "nvidia-smi-dmon": ("nvidia-smi-dmon.txt", 11, ImportOptions(constants=ASKED, steps=10)),
    "dcgmi-dmon": ("dcgmi-dmon.txt", 11, ImportOptions(constants=ASKED, interval_s=1.0)),
    "dcgm-exporter": ("dcgm-exporter.txt", 40, ImportOptions(constants=ASKED)),
    "zeus": ("zeus.csv", 9, ImportOptions(constants=ASKED, steps=10)),
    "zeus-trace": ("zeus-trace.csv", 9, ImportOptions(constants=("samples_per_epoch=1000",))),
    "codecarbon": ("codecarbon.csv", 9, ImportOptions(constants=("local_batch=8",), steps=10)),
    "mlperf": ("mlperf.log", 12, ImportOptions()),
    "sacct": ("sacct.txt", 9, ImportOptions()),
}
FORMS = ("nvidia-smi-dmon", "nvidia-smi", "dcgmi-dmon", "dcgm-exporter", "zeus", "codecarbon", "mlperf", "sacct")
ODD = (
    b"",
    b"nan",
    b"-1",
    b"0",
    b"1e308",
    b"9" * 40,
    b"[N/A]",
    b"\xff\xfe",
    b"\0",
    b'"',
    b"\xc3\xa9",
    b"0x",
    b"2024-13-45",
)
EDITED = st.binary(min_size=5, max_size=20)
EDITS = ("flip", "cut", "odd", "drop", "twice", "swap", "column", "number", "latin")


def mangle(content: bytes, drawn: bytes) -> bytes:
    """Edits: bytes flipped and cut, lines dropped, repeated and moved, columns dropped, cells replaced.

    Five bytes are one edit: one draw of bytes is quicker than a list of tuples.
    """
    for k in range(0, len(drawn) - 4, 5):
        kind = EDITS[drawn[k] % len(EDITS)]
        a, b = int.from_bytes(drawn[k + 1 : k + 3]), int.from_bytes(drawn[k + 3 : k + 5])
        lines = content.split(b"\n")
        i, j = a % len(lines), b % len(lines)
        at = a % (len(content) + 1)
        if kind == "flip" and content:
            at %= len(content)
            content = content[:at] + bytes([content[at] ^ (1 << b % 8)]) + content[at + 1 :]
        elif kind == "cut":
            content = content[:at] + content[at + b % 30 :]
        elif kind == "odd":
            content = content[:at] + ODD[b % len(ODD)] + content[at:]
        elif kind == "drop":
            content = b"\n".join(lines[:i] + lines[i + 1 :])
        elif kind == "twice":
            content = b"\n".join([*lines[:j], lines[i], *lines[j:]])
        elif kind == "swap":
            lines[i], lines[j] = lines[j], lines[i]
            content = b"\n".join(lines)
        elif kind == "column":
            mark = next((m for m in (b"|", b",", b" ") if m in lines[0]), b",")
            cells = [line.split(mark) for line in lines]
            content = b"\n".join(mark.join(c[: a % 8] + c[a % 8 + 1 :]) for c in cells)
        elif kind == "number":
            cells = lines[i].replace(b"|", b",").split(b",")
            cells[b % len(cells)] = ODD[a % len(ODD)]
            mark = b"|" if b"|" in lines[i] else b","
            content = b"\n".join([*lines[:i], mark.join(cells), *lines[i + 1 :]])
        elif kind == "latin":
            content = content.decode(errors="replace").encode("utf-16" if b % 2 else "latin-1", errors="replace")
    return content


def _refused_or_valid(tmp_path, case, drawn):
    name, count, options = CASES[case]
    form = next(f for f in FORMS if case.startswith(f))
    whole = (FIXTURES / name).read_bytes().split(b"\n")
    path = tmp_path / name
    path.write_bytes(mangle(b"\n".join(whole[:count]), drawn))
    try:
        done = importer(form).read([path], options)
    except PfprofileError as error:
        assert "\n" not in str(error)
        return
    assert done.profiles or done.jobs
    for job in done.jobs:
        assert job.n_gpus >= 1
        assert job.duration_s > 0
    for row in (row for profile in done.profiles for row in profile.rows()):
        assert row["n_gpus"] >= 1
        assert not doubts_of(row)


def examples(least):
    """At least so many; `make fuzz` asks for many more."""
    return settings(
        suppress_health_check=[HealthCheck.function_scoped_fixture],
        max_examples=max(least, settings.default.max_examples),
    )


@pytest.mark.parametrize("case", FORMS)
@examples(300)
@given(EDITED)
def test_mangled_logs_are_refused_or_become_a_profile(tmp_path, case, drawn):
    _refused_or_valid(tmp_path, case, drawn)


@pytest.mark.parametrize("case", sorted(set(CASES) - set(FORMS)))
@examples(100)
@given(EDITED)
def test_mangled_logs_under_other_options(tmp_path, case, drawn):
    _refused_or_valid(tmp_path, case, drawn)


@pytest.mark.parametrize("case", CASES)
def test_unmangled_beginnings_become_a_profile(tmp_path, case):
    """What the fuzzing starts from is good, so that a refusal comes of the damage."""
    name, count, options = CASES[case]
    form = next(f for f in FORMS if case.startswith(f))
    path = tmp_path / name
    path.write_bytes(b"\n".join((FIXTURES / name).read_bytes().split(b"\n")[:count]))
    done = importer(form).read([path], options)
    assert done.profiles or done.jobs
