"""Holds clocks on the fake GPUs as a sweep does, with a worker and without its weight. Usage: holder.py SEED"""

import random
import signal
import subprocess
import sys
import time

from pfprofile.device import ClockGuard, open_device
from pfprofile.device.signals import interruptible
from pfprofile.errors import PfprofileError


def main():
    dice = random.Random(int(sys.argv[1]))
    device = open_device("cuda")
    with interruptible(), ClockGuard(device) as guard:
        worker = subprocess.Popen(["sleep", "600"], start_new_session=True)
        try:
            print(worker.pid, flush=True)
            while True:
                clock = dice.choice([None, *device.supported_clocks_mhz])
                guard.hold(dice.randint(1, device.count), clock, for_s=60.0, groups=[worker.pid])
                print("held", flush=True)
                time.sleep(dice.uniform(0, 0.01))
        finally:
            worker.kill()
            worker.wait()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except PfprofileError as error:
        sys.exit(error.exit_code)
