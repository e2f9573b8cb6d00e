"""The Typer app: the commands, their configuration sources, and how errors leave the process."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pfprofile.cli._config import load_defaults
from pfprofile.cli._output import say
from pfprofile.errors import PfprofileError


class PfprofileGroup(TyperGroup):
    """A command group whose every expected error is one line on stderr and the right exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run; in standalone mode the process exits with the code of DESIGN's table."""
        self._name_variables()
        prog_name = prog_name or "pfprofile"
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        try:
            extra.setdefault("default_map", load_defaults(self))
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
            sys.stdout.flush()
        except PfprofileError as error:
            say(f"error: {error}")
            code = error.exit_code
        except BrokenPipeError:
            # The reader (head, less) has what it wanted; what is left to flush would raise again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        except SystemExit as left:
            # Typer and rich leave with 1 where the reader has closed; nothing else in here exits by itself.
            code = 0 if left.code == 1 else left.code
        except typer.Abort:
            code = 130
        except Exception as error:
            # Usage errors: click's class, wherever this version of typer keeps it.
            if not (hasattr(error, "format_message") and hasattr(error, "exit_code")):
                raise
            code = _usage(error)
        sys.exit(code if isinstance(code, int) else 0)

    def _name_variables(self) -> None:
        """``PFPROFILE_<COMMAND>_<FLAG>`` after the flag a person sees, not after our parameter's name."""
        for name, command in self.commands.items():
            for param in command.params:
                flag = next((o for o in param.opts if o.startswith("--")), None)
                if flag and flag != "--help":
                    param.envvar = f"PFPROFILE_{name}_{flag[2:]}".upper().replace("-", "_")
                    # Said once, in the root's help: repeated under each flag it would drown the words.
                    param.show_envvar = False  # type: ignore[attr-defined]


def _usage(error: Any) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        return 2  # the error's own making has printed the help
    message = " ".join(error.format_message().split())
    where = f" (see: {context.command_path} --help)" if context else ""
    say(f"error: {message}{where}")
    return int(error.exit_code)


app = typer.Typer(
    cls=PfprofileGroup,
    name="pfprofile",
    help="Profile DNN training, model its speed and power, and plan a GPU cluster under an energy budget.",
    epilog="Every flag can also be set by PFPROFILE_<COMMAND>_<FLAG> or in pfprofile.toml, one table a command.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        from pfprofile.cli._version import environment

        typer.echo("\n".join(environment()))
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and its environment."),
    ] = False,
) -> None:
    pass


def _register() -> None:
    from importlib import import_module

    for name in COMMANDS:
        module = import_module(f"pfprofile.cli.{name.replace('-', '_')}_cmd")
        app.command(name, help=module.HELP, epilog=module.EPILOG)(module.command)


#: in the order of the chain; each is cli/<name>_cmd.py with HELP, EPILOG (an example) and command()
COMMANDS: tuple[str, ...] = (
    "sweep",
    "fit",
    "predict",
    "pick",
    "validate",
    "plan",
    "compare",
    "import",
    "merge",
    "show",
    "check",
    "report",
    "doctor",
    "schema",
)
_register()
