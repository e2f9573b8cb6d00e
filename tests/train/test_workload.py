"""Finding a workload, telling what a class lacks, reading settings; memory errors are recognised."""

from pathlib import Path

import pytest

from pfprofile.errors import InputError, UsageError
from pfprofile.train.oom import is_out_of_memory
from pfprofile.train.resolve import load_workload, parse_workload
from pfprofile.train.workload import merged_settings

FAULTY = str(Path(__file__).parent.parent / "support" / "faulty.py")


def test_an_unknown_name_gives_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'resnet50'"):
        parse_workload("resnet51")


@pytest.mark.parametrize("text", ["a.py:not a name", ":Net", "module:"])
def test_what_names_no_class_is_refused(text):
    with pytest.raises(UsageError, match="names no class"):
        parse_workload(text)


def test_a_missing_file_is_named():
    with pytest.raises(InputError, match=r"nowhere\.py"):
        parse_workload("nowhere.py:Net")


def test_a_file_is_called_without_its_folder():
    assert parse_workload(f"{FAULTY}:Tiny").name == "faulty.py:Tiny"


def test_a_class_is_told_what_it_lacks():
    with pytest.raises(InputError) as caught:
        load_workload(parse_workload(f"{FAULTY}:Lacking"))
    assert "a method loss(output, targets)" in str(caught.value)
    assert "a method batch that takes (local_batch, settings, device, generator)" in str(caught.value)
    assert "build" not in str(caught.value)


def test_a_class_that_is_not_there_gives_the_nearest():
    with pytest.raises(InputError, match="did you mean 'Tiny'"):
        load_workload(parse_workload(f"{FAULTY}:Tinny"))


def test_a_module_that_is_not_there():
    with pytest.raises(InputError, match="no_such_module cannot be imported"):
        load_workload(parse_workload("no_such_module:Net"))


def test_a_file_without_a_class_is_told_its_workloads(tmp_path):
    with pytest.raises(UsageError, match=r"faulty\.py:Tiny"):
        parse_workload(FAULTY)
    with pytest.raises(InputError, match="no such file"):
        parse_workload("nowhere.py")
    (tmp_path / "broken.py").write_text("class")
    with pytest.raises(UsageError, match=r"broken\.py:Class"):
        parse_workload(str(tmp_path / "broken.py"))


def test_a_module_the_file_needs_is_to_be_installed(tmp_path):
    (tmp_path / "net.py").write_text("import no_such_library.sub\n")
    with pytest.raises(InputError, match="install no_such_library where pfprofile runs"):
        load_workload(parse_workload(f"{tmp_path / 'net.py'}:Net"))


def test_settings_are_read_as_their_defaults_kind():
    defaults = {"size": 224, "rate": 0.5, "fast": False, "word": "a"}
    given = {"size": "32", "rate": "1", "fast": "true", "word": "b"}
    assert merged_settings(defaults, given) == {"size": 32, "rate": 1.0, "fast": True, "word": "b"}


@pytest.mark.parametrize(("key", "value"), [("size", "a"), ("size", "0"), ("size", "1.5"), ("fast", "7"), ("siz", "1")])
def test_wrong_settings_are_refused(key, value):
    with pytest.raises(UsageError, match=r"siz|fast"):
        merged_settings({"size": 224, "fast": False}, {key: value})


class OutOfMemoryError(RuntimeError):
    pass


@pytest.mark.parametrize(
    "error",
    [
        OutOfMemoryError("x"),
        MemoryError(),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:114] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ],
)
def test_running_out_of_memory_is_recognised(error):
    assert is_out_of_memory(error)
    wrapped = ValueError("in the model")
    wrapped.__cause__ = error
    assert is_out_of_memory(wrapped)


@pytest.mark.parametrize("error", [ValueError("out of memory"), RuntimeError("shapes differ")])
def test_other_errors_are_not(error):
    assert not is_out_of_memory(error)
