"""Sensor logs of nvidia-smi, dmon, DCGM: what goes wrong in the field, and the right answer to each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from pfprofile.errors import InputError, PfprofileError, UsageError
from pfprofile.profile.importers import ImportOptions, importer

FIXTURES = Path(__file__).parents[1] / "fixtures" / "imports"
ASKED = ("workload=toy", "local_batch=8")
HEAD = "timestamp, index, power.draw [W], clocks.sm [MHz]"


def load(path, *constants, form="nvidia-smi", **options):
    return importer(form).read([path], ImportOptions(constants=(*ASKED, *constants), **options))


def one(done):
    (profile,) = done.profiles
    (row,) = profile.rows()
    return row


@pytest.fixture
def write(tmp_path):
    def write(text, name="x.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def smi(count=10, watts=200.0, gpus=1, step_ms=1000, head=HEAD):
    rows = [head]
    for i in range(count):
        ms = i * step_ms
        at = f"2024/01/02 03:{ms // 60000:02d}:{ms % 60000 // 1000:02d}.{ms % 1000:03d}"
        rows += [f"{at}, {g}, {watts:.2f} W, 1410 MHz" for g in range(gpus)]
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("form", "file", "options", "source"),
    [
        ("nvidia-smi", "nvidia-smi.csv", {}, "samples"),
        ("nvidia-smi-dmon", "nvidia-smi-dmon.txt", {}, "samples"),
        ("dcgmi-dmon", "dcgmi-dmon.txt", {"interval_s": 1.0}, "counter"),
        ("dcgm-exporter", "dcgm-exporter.txt", {}, "samples"),
    ],
)
def test_one_job_told_by_four_tools(form, file, options, source):
    """Two GPUs at 300 W and 320 W for 12 s between two idle spells."""
    done = load(FIXTURES / file, form=form, trim=True, steps=100, **options)
    row = one(done)
    assert (row["n_gpus"], row["steps"], row["energy_source"]) == (2, 100, source)
    assert row["step_time_s"] == pytest.approx(0.12, rel=1e-3)
    assert row["power_w"] == pytest.approx(310.0, rel=1e-6)
    assert row["power_spread_w"] == pytest.approx(20.0, rel=1e-6)
    assert row["energy_j"] == pytest.approx(2 * 310 * 12, rel=1e-3)
    assert row["achieved_clock_mhz"] == 1410
    assert row["memory_peak_bytes"] == 20000 * 2**20
    assert done.profiles[0].metadata.source == "imported"
    assert any(n.startswith("trimmed: 4.0 s at the start and 4.0 s at the end are idle") for n in done.notices)


def test_facts_of_the_machine_come_along():
    done = load(FIXTURES / "nvidia-smi.csv", trim=True)
    metadata, row = done.profiles[0].metadata, one(done)
    assert (metadata.gpu_name, metadata.driver_version) == ("NVIDIA A100-SXM4-40GB", "550.54.15")
    assert [u[:12] for u in metadata.gpu_uuids] == ["GPU-11111111", "GPU-22222222"]
    assert (row["power_limit_w"], row["temperature_c"], row["limited_by"]) == (400.0, 61.0, "none")
    assert row["started_at"].isoformat() == "2024-05-06T10:00:04.001000+00:00"


def test_two_hosts_are_two_nodes():
    row = one(load(FIXTURES / "dcgm-exporter.txt", form="dcgm-exporter", trim=True))
    assert (row["n_nodes"], row["placement"]) == (2, "1-1")


def test_idle_is_offered_for_trimming_and_counts_until_then():
    done = load(FIXTURES / "nvidia-smi.csv")
    assert any("count as training: leave them out with --trim" in n for n in done.notices)
    assert one(done)["power_w"] == pytest.approx(((300 + 320) / 2 * 12 + 60 * 6 + 60 + 310) / 20, rel=0.02)
    assert one(done)["achieved_clock_mhz"] == 1410  # of the busy readings


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2024/05/06 10:00:06", "2024-05-06T10:00:14"), ("10:00:06", "10:00:14"), ("6s", "14s"),
    ],
)  # fmt: skip
def test_a_window_by_time(start, end):
    row = one(load(FIXTURES / "nvidia-smi.csv", start=start, end=end, steps=80))
    assert row["step_time_s"] == pytest.approx(0.1)
    assert row["energy_j"] == pytest.approx(620 * 8)


def test_markers_written_into_the_log_bound_the_window(write):
    lines = (FIXTURES / "nvidia-smi.csv").read_text().splitlines()
    lines.insert(1 + 2 * 15, "# training ends")
    lines.insert(1 + 2 * 5, "# training starts")
    done = load(write("\n".join(lines)), start="training starts", end="training ends")
    assert one(done)["energy_j"] == pytest.approx(620 * 9, rel=1e-3)
    with pytest.raises(UsageError, match="--from 'training begins' is no time, no duration, and stands in no line"):
        load(write("\n".join(lines)), start="training begins")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": "1h"}, "is empty"), ({"start": "14s", "end": "6s"}, "is empty"),
        ({"start": "2031-01-01 00:00:00"}, "is empty"), ({"start": "x"}, "write for example"),
    ],
)  # fmt: skip
def test_a_window_outside_the_log_is_refused(options, words):
    with pytest.raises(UsageError, match=words):
        load(FIXTURES / "nvidia-smi.csv", **options)


def test_what_the_file_cannot_say_is_asked_for_in_one_line(write):
    with pytest.raises(UsageError) as caught:
        importer("nvidia-smi").read([write(smi())], ImportOptions())
    assert str(caught.value).endswith(
        "does not say workload and local_batch (add --set workload=NAME --set local_batch=SAMPLES)"
    )


def test_without_steps_the_step_time_stays_unknown_and_is_asked_for(write):
    done = load(write(smi()))
    assert one(done)["step_time_s"] is None
    assert any("no step time is known" in n and "--steps COUNT" in n for n in done.notices)
    assert one(load(write(smi()), "step_time_s=0.25"))["step_time_s"] == 0.25
    with pytest.raises(UsageError, match="given twice"):
        load(
            write(smi()),
            "step_time_s=0.25",
            steps=None,
            log=write("step 1\nstep 2\n", "t.log"),
            log_regex=r"step (?P<step>\d+)",
        )


@pytest.mark.parametrize(
    "cell",
    ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[Function Not Found]", "[GPU requires reset]", "", "ERR!",
     "[Requested functionality has been deprecated]", "nan", "-", "The field is deprecated"],
)  # fmt: skip
def test_every_spelling_of_unknown_is_null(write, cell):
    row = one(load(write(smi().replace("1410 MHz", cell))))
    assert row["achieved_clock_mhz"] is None
    assert row["power_w"] == pytest.approx(200)
    done = load(write(smi().replace("200.00 W", cell)))
    assert (one(done)["power_w"], one(done)["energy_j"]) == (None, None)
    assert any("no power in the window" in n for n in done.notices)


@pytest.mark.parametrize(
    ("head", "cells"),
    [
        ("power.draw [W], clocks.sm [MHz]", "200.00, 1410"),  # csv,nounits: the header carries them
        ("power.draw, clocks.current.sm", "200.00 W, 1410 MHz"),
        ("power.draw.average [W], clocks.gr [MHz]", "200.00 W, 1410 MHz"),
        ("power.draw.instant [W], power.draw [W], clocks.sm", "200.00 W, 150.00 W, 1410"),
        ("power.draw.instant [W], power.draw [W], clocks.sm", "[N/A], 200.00 W, 1410"),
        ("power.draw [mW], clocks.sm [GHz]", "200000, 1.41"),
    ],
)
def test_units_and_names_old_and_new(write, head, cells):
    rows = [f"timestamp, {head}", *(f"2024/01/02 03:04:{i:02d}.000, {cells}" for i in range(10))]
    row = one(load(write("\n".join(rows))))
    assert (row["power_w"], row["achieved_clock_mhz"], row["energy_j"]) == pytest.approx((200, 1410, 1800))


def test_without_a_header_the_columns_are_asked_for(write):
    path = write(smi().split("\n", 1)[1])
    with pytest.raises(InputError, match=r"line 1: data without a header.*--columns timestamp,index"):
        load(path)
    assert one(load(path, columns="timestamp,index,power.draw,clocks.sm"))["power_w"] == pytest.approx(200)
    with pytest.raises(InputError, match="names no field of nvidia-smi"):
        load(path, columns="a,b")


@pytest.mark.parametrize("kind", ["event", "throttle"])
def test_clock_reasons_under_both_names(write, kind):
    head = f"timestamp, power.draw, clocks_{kind}_reasons.active"
    rows = [head, *(f"2024/01/02 03:04:{i:02d}.000, 200 W, 0x0000000000000004" for i in range(5))]
    assert one(load(write("\n".join(rows))))["limited_by"] == "power"
    head = f"timestamp, power.draw, clocks_{kind}_reasons.hw_thermal_slowdown"
    rows = [head, *(f"2024/01/02 03:04:{i:02d}.000, 200 W, Active" for i in range(5))]
    assert one(load(write("\n".join(rows))))["limited_by"] == "thermal"


def test_requested_and_achieved_clock_stay_apart(write):
    row = one(load(write(smi()), "requested_clock_mhz=1500"))
    assert (row["requested_clock_mhz"], row["achieved_clock_mhz"]) == (1500, 1410)


def test_windows_line_ends_boms_and_utf16(write):
    wanted = one(load(write(smi())))["energy_j"]
    for text, encoding in ((smi().replace("\n", "\r\n"), "utf-8"), (smi(), "utf-8-sig"), (smi(), "utf-16")):
        assert one(load(write(text, encoding=encoding)))["energy_j"] == wanted


def test_unreadable_lines_are_counted_with_their_numbers(write):
    lines = smi().splitlines()
    lines[3:3] = ["", "Unable to determine the device handle for GPU0: Unknown Error", HEAD]
    lines.append("2024/01/02 03:0")
    path = write("\n".join(lines))
    done = load(path)
    assert one(done)["power_w"] == pytest.approx(200)
    assert done.notices[0].startswith(f"{path}: 4 lines were not read (lines 4, 5, 6, 15): blank")


def test_nothing_left_is_an_error(write):
    with pytest.raises(InputError, match="no readings; 2 lines were not read, the first is line 2") as caught:
        load(write(f"{HEAD}\nnonsense\nmore nonsense\n"))
    assert caught.value.exit_code == 3


def test_parts_with_different_headers_are_refused(write):
    path = write(
        smi() + "timestamp, index, clocks.sm [MHz], power.draw [W]\n2024/01/02 03:05:00.000, 0, 1410 MHz, 1 W\n"
    )
    with pytest.raises(InputError) as caught:
        load(path)
    text = str(caught.value)
    assert "line 12 has another header" in text
    assert "'timestamp, index, clocks.sm [MHz], power.draw [W]'" in text
    assert f"the file began with '{HEAD}'" in text


def test_several_gpus_without_an_id_are_refused(write):
    head = "timestamp, power.draw [W]"
    rows = [head]
    for i in range(6):
        rows += [f"2024/01/02 03:04:{i:02d}.000, 200 W", f"2024/01/02 03:04:{i:02d}.001, 300 W"]
    path = write("\n".join(rows))
    with pytest.raises(InputError, match=r"several GPUs, and no id to tell them.*--query-gpu=timestamp,uuid,index"):
        load(path)
    assert one(load(path, "n_gpus=1"))["n_gpus"] == 1


def test_gpus_are_chosen_by_index_or_uuid():
    def row(ids):
        return one(load(FIXTURES / "nvidia-smi.csv", gpu_ids=ids, trim=True))

    assert (row("1")["n_gpus"], row("1")["power_w"]) == (1, pytest.approx(320))
    assert row("GPU-1111")["power_w"] == pytest.approx(300)  # an abbreviated UUID
    assert row("0,1")["power_w"] == pytest.approx(310)
    for ids, words in (("2", "is no GPU"), ("GPU-", "is no GPU"), ("MIG-1/2/3", "is no GPU")):
        with pytest.raises(UsageError, match=words):
            row(ids)


def test_fewer_gpus_than_were_logged_must_be_named(write):
    with pytest.raises(UsageError, match="--gpu-ids"):
        load(write(smi(gpus=2)), "n_gpus=1")
    done = load(write(smi(gpus=2)), "n_gpus=16", "n_nodes=8")
    assert (one(done)["power_w"], one(done)["energy_j"]) == (pytest.approx(200), None)
    assert any("the energy of all is unknown" in n for n in done.notices)


def test_holes_in_a_log_are_said_and_big_ones_refused(write):
    rows = smi(count=60).splitlines()
    done = load(write("\n".join(rows[:20] + rows[40:])))
    assert any("no readings from 2024-01-02 03:00:18.0 to 2024-01-02 03:00:39.0 (21.0 s of 59.0 s)" in n
               for n in done.notices)  # fmt: skip
    with pytest.raises(InputError, match="most of the window is a hole"):
        load(write("\n".join(rows[:5] + rows[55:])))


def test_a_gpu_that_stayed_idle_is_pointed_out(write):
    text = (FIXTURES / "nvidia-smi.csv").read_text().replace("320.00 W", "61.00 W")
    done = load(write(text), trim=True)
    assert any("drew 61 W where another drew 300 W: if it did not train, leave it out" in n for n in done.notices)
    assert one(done)["idle_power_w"] is None  # not guessed from a GPU that did nothing


def test_the_log_of_every_rank_counts_once(write):
    """Two ranks wrote down the same GPUs: the energy is the node's, not twice that."""
    paths = [write(smi(gpus=2), "rank0.csv"), write(smi(gpus=2), "rank1.csv")]
    done = importer("nvidia-smi").read(paths, ImportOptions(constants=ASKED))
    assert one(done)["energy_j"] == pytest.approx(2 * 200 * 9)


def test_mig_power_is_the_whole_gpus(write):
    head = "timestamp, uuid, power.draw, mig.mode.current"
    rows = [head, *(f"2024/01/02 03:04:{i:02d}.000, GPU-1, 200 W, Enabled" for i in range(5))]
    done = load(write("\n".join(rows)))
    assert one(done)["power_w"] == pytest.approx(200)
    assert any("MIG is on" in n for n in done.notices)
    slices = load(write("\n".join(rows).replace("GPU-1", "MIG-1")))
    assert one(slices)["power_w"] is None


@pytest.mark.parametrize(
    ("watts", "words"),
    [(250_000.0, "line 2: power is 250,000 W for one GPU: milliwatts?"), (0.25, "power_w is 0.25 W for one GPU: kilo")],
)  # fmt: skip
def test_a_wrong_unit_is_refused_with_the_suspicion(write, watts, words):
    with pytest.raises(InputError) as caught:
        load(write(smi(watts=watts)))
    assert words in str(caught.value)


def test_one_impossible_reading_is_left_out(write):
    lines = smi().splitlines()
    lines[4] = lines[4].replace("200.00", "4294967.29")
    done = load(write("\n".join(lines)))
    assert one(done)["power_w"] == pytest.approx(200)
    assert any("1 impossible power readings left out (line 5)" in n for n in done.notices)


def test_no_timestamps_ask_for_the_interval(write):
    path = write("\n".join(["index, power.draw [W]", *["0, 200 W"] * 10]))
    with pytest.raises(UsageError, match=r"carry no timestamps.*--interval"):
        load(path)
    assert one(load(path, interval_s=2.0))["energy_j"] == pytest.approx(200 * 18)
    with pytest.raises(UsageError, match="must be above 0"):
        load(path, interval_s=0.0)


def test_one_reading_is_too_short_and_marked(write):
    done = load(write(smi(count=1)), steps=5)
    row = one(done)
    assert (row["power_w"], row["energy_j"], row["step_time_s"]) == (None, None, None)
    assert row["error"] == "too short: 1 of at least 3 readings in the window"
    assert any("too short" in n for n in done.notices)


def test_polling_faster_than_the_sensor_says_so(write):
    rows = [HEAD]
    for i in range(400):  # the sensor moves every 100 ms, the poll comes every 5 ms
        watts = 200 + i // 20 % 2 * 50
        rows.append(f"2024/01/02 03:04:{i * 5 // 1000:02d}.{i * 5 % 1000:03d}, 0, {watts} W, 1410 MHz")
    done = load(write("\n".join(rows)))
    assert one(done)["power_w"] == pytest.approx(225, rel=0.01)
    assert any("400 readings hold 21 different ones" in n for n in done.notices)


@pytest.mark.parametrize(("first", "source"), [(24, "counter"), (18, "samples")])
def test_a_counter_that_ran_backwards_is_split_there(write, first, source):
    """In the middle both pieces give a line; near an edge too little is left, and the power readings speak."""
    text = (FIXTURES / "dcgmi-dmon.txt").read_text().splitlines()
    for i in range(first, len(text)):
        cells = text[i].split()
        text[i] = " ".join([*cells[:4], str(int(float(cells[4])) - 5_000_000), *cells[5:]])
    done = load(write("\n".join(text), "d.txt"), form="dcgmi-dmon", interval_s=1.0, trim=True)
    assert one(done)["energy_j"] == pytest.approx(620 * 12)
    assert one(done)["energy_source"] == source
    assert any("the energy counter ran backwards (1 times): the window is split there" in n for n in done.notices)


def test_dcgmi_lines_with_a_time_before_them(write):
    """As ``dcgmi dmon | ts`` writes them: headers carry the time too."""
    lines = (FIXTURES / "dcgmi-dmon.txt").read_text().splitlines()
    for stamp in ("2024-05-06T10:00:{:02d}.000", "2024-05-06 10:00:{:02d}"):
        timed = "\n".join(f"{stamp.format(max(0, i - 2) // 2)} {line}" for i, line in enumerate(lines))
        row = one(load(write(timed, "d.txt"), form="dcgmi-dmon", trim=True))
        assert row["energy_j"] == pytest.approx(620 * 12)
        assert row["started_at"].isoformat() == "2024-05-06T10:00:04+00:00"


def test_a_log_of_the_counter_alone_is_trimmed_too(write):
    lines = [line.split() for line in (FIXTURES / "dcgmi-dmon.txt").read_text().splitlines()[2:]]
    text = "\n".join(["#Entity TOTEC SMCLK", "ID mJ MHz", *(" ".join([*c[:2], c[4], c[5]]) for c in lines)])
    done = load(write(text, "d.txt"), form="dcgmi-dmon", interval_s=1.0, trim=True)
    assert any(n.startswith("trimmed") for n in done.notices)
    assert one(done)["power_w"] == pytest.approx(310, rel=0.05)  # an edge falls between two readings of the counter
    assert (one(done)["energy_source"], one(done)["achieved_clock_mhz"]) == ("counter", 1410)


def test_dmon_as_csv(write):
    rows = ["#gpu, pwr, pclk", "#Idx, W, MHz", *["0, 200, 1410"] * 5]
    row = one(load(write("\n".join(rows)), form="nvidia-smi-dmon", interval_s=1.0))
    assert (row["power_w"], row["achieved_clock_mhz"]) == (200, 1410)


def test_counter_and_samples_that_disagree_are_both_said(write):
    text = (FIXTURES / "dcgmi-dmon.txt").read_text()
    for old, new in (("300.000", "200.000"), ("320.000", "220.000")):
        text = text.replace(old, new)
    done = load(write(text, "d.txt"), form="dcgmi-dmon", interval_s=1.0, trim=True)
    assert one(done)["power_w"] == pytest.approx(310)
    assert any(
        "the energy counter says 3600 J, the power readings 2400 J: the counter is taken" in n for n in done.notices
    )


def test_a_counter_in_another_unit_is_refused(write):
    lines = []
    for line in (FIXTURES / "dcgmi-dmon.txt").read_text().splitlines():
        cells = line.split()
        lines.append(" ".join([*cells[:4], cells[4] + "000", *cells[5:]]) if cells[0] == "GPU" else line)
    with pytest.raises(InputError, match="millijoules or microjoules"):
        load(write("\n".join(lines), "d.txt"), form="dcgmi-dmon", interval_s=1.0)


def test_slices_of_the_exporter_have_no_power_of_their_own(write):
    text = (FIXTURES / "dcgm-exporter.txt").read_text().replace(',device="', ',GPU_I_ID="3",device="')
    done = load(write(text, "m.txt"), form="dcgm-exporter")
    assert one(done)["power_w"] is None
    assert any("MIG slices: their power is the whole GPU's and was left out" in n for n in done.notices)


def test_dmon_carries_time_over_midnight(write):
    rows = ["#Time        gpu    pwr   pclk", "#HH:MM:SS    Idx      W    MHz"]
    rows += [f" {t}    0    200   1410" for t in ("23:59:58", "23:59:59", "00:00:00", "00:00:01")]
    assert one(load(write("\n".join(rows)), form="nvidia-smi-dmon"))["energy_j"] == pytest.approx(600)


TRAIN = "\n".join(f"2024-05-06 10:00:{4 + i:02d} step {10 * i} loss 0.{i} rate 160.0 it/s 0.1s" for i in range(13))


@pytest.mark.parametrize(
    ("regex", "step_time_s", "steps"),
    [
        (r"^(?P<time>\S+ \S+) step (?P<step>\d+)", 0.1, 120),
        (r"step (?P<step>\d+)", 12 / 130, 130),
        (r"rate (?P<rate>[\d.]+)", 0.1, None),
        (r"rate ([\d.]+)", 0.1, None),
        (r"(?P<step_time_s>[\d.]+)s$", 0.1, None),
    ],
)
def test_step_times_come_from_the_training_log(write, regex, step_time_s, steps):
    train = write(TRAIN, "train.log")
    row = one(load(FIXTURES / "nvidia-smi.csv", trim=True, log=train, log_regex=regex))
    assert row["step_time_s"] == pytest.approx(step_time_s, rel=1e-3)
    assert row["steps"] == steps


def test_the_training_log_bounds_the_window(write):
    """Its first and last line are the markers: no idle counts, without --trim."""
    row = one(
        load(FIXTURES / "nvidia-smi.csv", log=write(TRAIN, "t.log"), log_regex=r"^(?P<time>\S+ \S+) step (?P<step>\d+)")
    )
    assert row["energy_j"] == pytest.approx(620 * 12, rel=1e-3)
    late = write(TRAIN.replace("10:00", "18:00"), "late.log")
    with pytest.raises(UsageError, match="another time zone"):
        load(FIXTURES / "nvidia-smi.csv", log=late, log_regex=r"^(?P<time>\S+ \S+) step (?P<step>\d+)")


@pytest.mark.parametrize(
    ("log", "regex", "words"),
    [
        (True, None, "--log needs --log-regex"), (False, "x", "--log-regex needs --log FILE"),
        (True, "(", "no regular expression"), (True, "step", "does not say what it finds"),
        (True, "(?P<time>x)", "does not say what it finds"), (True, r"epoch (?P<step>\d+)", "no line matches"),
    ],
)  # fmt: skip
def test_mistakes_with_the_training_log(write, log, regex, words):
    with pytest.raises(PfprofileError) as caught:
        load(write(smi()), log=write(TRAIN, "t.log") if log else None, log_regex=regex)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("form", "content", "words"),
    [
        ("nvidia-smi", b"", "empty"), ("nvidia-smi", b"PAR1\0\0", "not a text file"),
        ("nvidia-smi", b"\0" * 50 + b"a", "not a text file"), ("nvidia-smi", b"hello\n", "no header of nvidia-smi"),
        ("nvidia-smi", b"network,batch_size\n1,2\n", "line 1: a header, but not of nvidia-smi: 'network,batch_size'"),
        ("nvidia-smi-dmon", b"hello\n", "no header of nvidia-smi dmon"),
        ("dcgmi-dmon", b"hello\n", "no header of dcgmi"),
        ("dcgm-exporter", b"hello there you\n", "no readings"),
    ],
)  # fmt: skip
def test_foreign_files_are_named(tmp_path, form, content, words):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(path, form=form)
    assert words in str(caught.value)
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "nowhere", form=form)
