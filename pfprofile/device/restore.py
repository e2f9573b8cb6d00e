"""Reset the clocks that a dead owner's journal names."""

from __future__ import annotations

from pfprofile.device.locks import LockJournal, boot_id, read_journals
from pfprofile.device.watchdog import reopen
from pfprofile.errors import HardwareError

#: A journal may name only openers of our own: it is read by root, and what it names is imported.
OURS = "pfprofile.device."


def restore_clocks(*, insist: bool) -> list[str]:
    """Clear what journals of dead owners name.

    Args:
        insist: a journal that cannot be cleared is an error; else it is only said.

    Returns:
        what was done, a line a journal.

    Raises:
        HardwareError: an owner lives (it is named), or a reset fails; all journals are tried first.
    """
    journals, troubles = read_journals()
    done: list[str] = []
    for journal in journals:
        owner = journal.owner()
        if owner is not None:
            troubles.append(f"{owner} holds the clocks of {', '.join(journal.uuids)}: end it, and they are reset")
            continue
        try:
            done.append(_clear(journal))
        except HardwareError as error:
            troubles.append(f"{journal.path}: {error}")
    if troubles and insist:
        raise HardwareError("; ".join([*done, *troubles]))
    return done + troubles


def _clear(journal: LockJournal) -> str:
    """Reset one journal's clocks and remove it. Raises HardwareError."""
    gpus = ", ".join(journal.uuids)
    if journal.boot_id != boot_id():
        journal.remove()
        return f"the clocks of {gpus} were locked by process {journal.pid} before this boot, which has reset them"
    journal.wait_for_watchdog()
    if not journal.path.exists():
        return f"the clocks of {gpus} have just been reset by the watchdog of process {journal.pid}, which has died"
    if not journal.opener.startswith(OURS):
        raise HardwareError(f"it names the unknown device kind {journal.opener}", "remove the file")
    device = reopen(journal.opener, journal.uuids)
    try:
        for index in range(device.count):
            device.reset_clock(index)
    finally:
        device.close()
    journal.remove()
    return f"reset the clocks of {gpus}, which process {journal.pid} had left locked when it died"
