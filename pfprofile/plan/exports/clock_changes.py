"""The part of every script that changes clocks at the planned times, beside the training."""

from __future__ import annotations

_TEXT = r"""if [ "$locked" = yes ] && [ "${#clocks[@]}" -gt 1 ]; then
  (
    trap - EXIT INT
    trap 'kill $(jobs -p) 2>/dev/null; exit' TERM # its sleep, too
    begun=$SECONDS
    for change in "${clocks[@]:1}"; do
      left=$((${change%%:*} - (SECONDS - begun)))
      [ "$left" -gt 0 ] && { sleep "$left" & wait $!; }
      SET "${change#*:}" || echo "pfprofile: the clock could not be changed to ${change#*:}" >&2
    done
  ) &
  timer=$!
fi
"""


def clock_changes_by(command: str) -> str:
    """Shell that changes the clocks after the first of ``clocks`` by a command, in a process of its own (``timer``).

    On TERM it ends at once, but for a change that is under way: that is finished first.
    """
    return _TEXT.replace("SET", command)
