"""Starts `pfprofile` in processes of its own that have the heavy libraries imported already.

Importing pandas, scipy and scikit-learn takes most of a command's second, and the suite runs hundreds of commands. A
server imports them once and forks for every call; nothing of pfprofile itself is imported before the fork. As a script
it is the client: ``python zygote.py SOCKET ARGUMENT…`` behaves as ``python -m pfprofile ARGUMENT…`` does.
"""

import atexit
import contextlib
import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path

HEAVY = ("numpy", "pandas", "pyarrow.parquet", "scipy.optimize", "scipy.sparse", "sklearn.ensemble", "rich.table",
         "pydantic", "typer", "matplotlib.figure", "jinja2")  # fmt: skip


def serve(path):
    """Answer calls until the process is ended."""
    from importlib import import_module

    for name in HEAVY:
        with contextlib.suppress(ImportError):
            import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    print("ready", flush=True)
    while True:
        call, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _answer(call)
        call.close()


def _answer(call):
    """Run one call in a process, and say how it ended."""
    head, fds, _, _ = socket.recv_fds(call, 8, 3)
    body = b""
    while len(body) < int(head):
        body += call.recv(65536)
    child = os.fork()
    if child == 0:
        call.close()
        _run(json.loads(body), fds)
    for fd in fds:
        os.close(fd)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(BrokenPipeError):
        call.sendall(str(code).encode())
    os._exit(0)


def _run(order, fds):
    """Become ``python -m pfprofile``."""
    import runpy

    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    sys.argv = ["pfprofile", *order["argv"]]
    sys.path[0] = order["cwd"]
    if "PYTHONIOENCODING" in order["env"]:  # which Python reads at its start only
        sys.stdout.reconfigure(encoding=order["env"]["PYTHONIOENCODING"])
    code = 1
    try:
        runpy.run_module("pfprofile", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
    except BaseException:  # noqa: BLE001 - the end of a program: whatever it was, it is shown
        sys.excepthook(*sys.exc_info())
    finally:
        _end(code)


def _end(code):
    """As the interpreter ends: threads, then what was registered (pools of processes end there), then the streams."""
    with contextlib.suppress(Exception):
        threading._shutdown()
        atexit._run_exitfuncs()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def call(path, argv, fds, *, cwd, env):
    """Exit code of one command whose stdin, stdout and stderr are these."""
    body = json.dumps({"argv": list(argv), "cwd": str(cwd), "env": dict(env)}).encode()
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(path))
        socket.send_fds(line, [f"{len(body):8d}".encode()], fds)
        line.sendall(body)
        return int(line.recv(16) or b"1")


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    sys.exit(call(sys.argv[1], sys.argv[2:], [0, 1, 2], cwd=Path.cwd(), env=os.environ))
