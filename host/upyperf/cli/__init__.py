"""The command `upyperf`: parses, calls, prints; no logic."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from typing import Any

import typer

from upyperf.errors import EXIT_CODES, UpyperfError

EXIT_TEXT = """\b
Exit status: 0 ok, 1 a threshold failed, 2 usage or configuration, 3 board or serial,
4 flashing, 5 network or peer, 6 protocol or inconsistent result, 130 interrupted
(what was measured is kept)."""

app = typer.Typer(
    name="upyperf",
    help="The network-throughput bench for MicroPython boards.",
    epilog=EXIT_TEXT,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _register() -> None:
    from upyperf.cli import bench, run, show, tools, winc
    from upyperf.insn import command as insn

    for module in (bench, run, show, tools, winc, insn):
        module.register(app)


def _say(text: str) -> None:
    print(f"upyperf: error: {text}", file=sys.stderr)


def _fail(error: UpyperfError, arguments: list[str]) -> int:
    if "--json" in arguments or "-J" in arguments:
        # Whoever parses stdout gets a document in any case.
        document = {"schema_version": 1, "error": {"kind": error.kind, "text": error.text}}
        try:
            print(json.dumps({**document, "exit_code": error.exit_code}), flush=True)
        except OSError:
            _abandon_stdout()
    _say(error.text)
    return error.exit_code


def _abandon_stdout() -> None:
    """What stdout still holds goes nowhere."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _as_ctrl_c(_number: int, _frame: object) -> None:
    """A CI's time limit or a closed terminal: end as after Ctrl-C, results kept, peers ended."""
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status. No exception leaves it."""
    words = sys.argv[1:] if arguments is None else arguments
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, _as_ctrl_c)
    _register()
    command: Any = typer.main.get_command(app)
    try:
        # Not command.main(): that ends on Ctrl-C without a word.
        with command.make_context("upyperf", list(words)) as context:
            outcome = command.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()  # what cannot be written is told here, not by the interpreter's end
        return outcome if isinstance(outcome, int) else 0
    except UpyperfError as error:
        return _fail(error, words)
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted")
        return EXIT_CODES["interrupted"]
    except BrokenPipeError:
        # The reader of our output has gone, e.g. `| head`.
        _abandon_stdout()
        return 0
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except OSError as error:
        # A full disk, a folder that is read only: nothing that a line of ours could mend.
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:
            _abandon_stdout()
        where = f"{error.filename}: " if error.filename else ""
        return _fail(UpyperfError("config", f"{where}{error.strerror or error}"), words)
    except Exception as error:
        if type(error).__name__ == "Exit":  # --help has been printed
            return int(getattr(error, "exit_code", 0))
        # The parser's own errors are told by what they can do, since typer keeps their classes private.
        if hasattr(error, "format_message"):
            if type(error).__name__ == "NoArgsIsHelpError":
                print(error.format_message())
                return EXIT_CODES["usage"]
            return _fail(UpyperfError("usage", _one_line(error.format_message())), words)
        if os.environ.get("UPYPERF_DEBUG"):
            traceback.print_exc()
        what = f"{type(error).__name__}: {_one_line(str(error))}"
        _say(f"this is a bug in upyperf: {what} (UPYPERF_DEBUG=1 shows where)")
        return EXIT_CODES["protocol"]


def _one_line(text: str) -> str:
    return " ".join(text.split())
