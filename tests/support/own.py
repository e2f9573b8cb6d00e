"""Training commands of one's own that fail as their batch says. Usage: own.py BATCH [CHILDREN]"""

import os
import signal
import subprocess
import sys
import time

import pfprofile

OOM, HANG, KILLED, FAILS, ENDS, SILENT, SLOW = 3, 4, 5, 6, 7, 8, 9


def main():
    batch = int(sys.argv[1])
    if "child" in sys.argv:
        # As torchrun starts its workers: in a session of their own, deaf to a polite request.
        subprocess.Popen([sys.executable, "-c", "import signal, time\nsignal.signal(15, signal.SIG_IGN)\n"
                          "time.sleep(600)"], start_new_session=True)  # fmt: skip
    if batch == SLOW:
        time.sleep(1.5)
    for step in range(10**9):
        time.sleep(0.004)
        if batch == SILENT:
            continue
        if step == 5:
            if batch == OOM:
                sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
            if batch == HANG:
                time.sleep(600)
            if batch == KILLED:
                os.kill(os.getpid(), signal.SIGKILL)
            if batch == FAILS:
                print("Traceback, and so on\nValueError: the data is odd\n====")
                sys.exit(3)
            if batch == ENDS:
                return
        pfprofile.step(samples=batch)
        print(f"step {step}: {batch / 0.004:,.1f} samples/s")


if __name__ == "__main__":
    main()
