"""Compiles the C sources to ``libnvidia-ml.so.1``, with or without some functions, and loads them for control."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fake_nvml.devices import CProfile
from tests.fake_nvml.records import CAudit, CKernel, CTruth

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCES = Path(__file__).parent / "src"
LIBRARY = "libnvidia-ml.so.1"
CONTROL = "libfakecontrol.so"


def compiler() -> str | None:
    """The C compiler, or None where there is none."""
    return shutil.which("gcc") or shutil.which("cc")


def _run(*command: str | Path) -> None:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stderr}")


def build(folder: Path) -> Path:
    """Compile into ``folder``: the objects, the library, and a twin under another name for this process.

    The twin lets a test control the fake without having a ``libnvidia-ml.so.1`` loaded itself.
    """
    gcc = compiler()
    if gcc is None:
        raise RuntimeError("no C compiler: install gcc")
    folder.mkdir(parents=True, exist_ok=True)
    sources = sorted(SOURCES.glob("*.c"))
    flags = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC")
    for source in sources:
        _run(gcc, *flags, "-c", source, "-o", folder / f"{source.stem}.o")
    link(folder, folder / LIBRARY)
    link(folder, folder / CONTROL, soname=CONTROL)
    return folder


def link(folder: Path, target: Path, without: Iterable[str] = (), soname: str = LIBRARY) -> Path:
    """Link the objects of ``folder`` to ``target``; the functions named in ``without`` are missing from it."""
    gcc = compiler()
    assert gcc is not None
    target.parent.mkdir(parents=True, exist_ok=True)
    hidden = "".join(f" {name};" for name in without)
    script = target.with_name(target.name + ".map")
    script.write_text(f"{{ global: nvml*; fake_*; local:{hidden} *; }};\n")
    objects = [folder / f"{s.stem}.o" for s in sorted(SOURCES.glob("*.c"))]
    _run(
        gcc,
        "-shared",
        f"-Wl,-soname,{soname}",
        f"-Wl,--version-script={script}",
        "-o",
        target,
        *objects,
        "-lpthread",
        "-lm",
    )
    return target


def load(path: Path) -> Any:
    lib = ctypes.CDLL(str(path))
    state, u32, i32, u64, dbl = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64, ctypes.c_double
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "fake_sizeof_profile": (u64, []),
        "fake_create": (state, [ctypes.c_char_p, ctypes.c_char_p, i32]),
        "fake_attach": (state, [ctypes.c_char_p]),
        "fake_detach": (None, [state]),
        "fake_created_ns": (ctypes.c_int64, [state]),
        "fake_add_gpu": (i32, [state, ctypes.POINTER(CProfile), ctypes.c_char_p, ctypes.c_char_p, u32]),
        "fake_set": (None, [state, u32, u32, ctypes.c_int64]),
        "fake_rule": (i32, [state, ctypes.c_char_p, u32, dbl, u64, u64, i32, i32]),
        "fake_clear_rules": (None, [state]),
        "fake_foreign": (i32, [state, u32, i32, u64]),
        "fake_load": (i32, [state, u32, i32, dbl, dbl]),
        "fake_unload": (None, [state, u32, i32]),
        "fake_truth": (None, [state, u32, ctypes.POINTER(CTruth)]),
        "fake_energy_at": (dbl, [state, u32, ctypes.c_int64]),
        "fake_audit": (u64, [state, u64, u64, ctypes.POINTER(CAudit)]),
        "fake_kernels": (u64, [state, u64, u64, ctypes.POINTER(CKernel)]),
        "fake_calls": (u64, [state, ctypes.c_char_p]),
        "fake_called": (i32, [state, u32, ctypes.c_char_p, ctypes.POINTER(u64)]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    if lib.fake_sizeof_profile() != ctypes.sizeof(CProfile):
        raise RuntimeError("devices.CProfile and profile_t of state.h differ")
    return lib
