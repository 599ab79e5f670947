# mypy: ignore-errors
"""The REPLs of the unix board: raw, raw-paste and friendly, as MicroPython's shared/runtime/pyexec.c
speaks them, served by one process that lives from one reset to the next.

Arguments: root of the file system, state directory, "raw" or "friendly", unique id in hex, and
"report" when the board process waits to hear that we are up.
The process ends with one of the EXIT codes; the board process then starts the next one.
"""

import binascii
import gc
import io
import sys

import boardfs
import lineedit
import shim_machine
import shim_micropython
import terminal
import vfs

EXIT_SOFT_RAW = 10
EXIT_SOFT_FRIENDLY = 11
EXIT_HARD = 12

_WINDOW = 2048  # bytes that the host may send ahead in raw-paste mode, twice at the start
_READY = b"\x16"
_RAW_BANNER = b"raw REPL; CTRL-B to exit\r\n"
_HERE = __file__.rsplit("/", 1)[0]
_OWN_FRAME = '  File "' + _HERE + "/"

_CTRL_A, _CTRL_B, _CTRL_C, _CTRL_D, _CTRL_E = 1, 2, 3, 4, 5


class _Interrupted(Exception):
    pass


class _Traceback(io.IOBase):
    """Takes what sys.print_exception() writes and passes on all but this server's own frames."""

    def __init__(self):
        self.line = b""

    def write(self, data):
        self.line += bytes(data)
        while True:
            end = self.line.find(b"\n")
            if end < 0:
                return len(data)
            if not self.line.startswith(_OWN_FRAME.encode()):
                terminal.write(self.line[:end] + b"\r\n")
            self.line = self.line[end + 1 :]


def _print_exception(exc):
    try:
        sys.print_exception(exc, _Traceback())
    except MemoryError:
        gc.collect()
        terminal.write(b"MemoryError: memory allocation failed\r\n")


class _Reset(Exception):
    pass


class Server:
    def __init__(self, user, raw):
        self.user = user
        self.raw = raw
        self.editor = lineedit.LineEditor()

    # -- running code

    def execute(self, source, name="<stdin>", mode="exec", eof=False):
        """Compile and run; with `eof` mark the end of the output and of the error text, as the raw
        REPL does. `source` is a list that is emptied, so that the text is free while the code runs.
        Raises _Reset when the code asked for one."""
        exc = None
        try:
            code = compile(bytes(source.pop()), name, mode)
            terminal.interruptible()
            exec(code, self.user)
            terminal.binary()
            for _ in (0, 1):  # a Ctrl-C that came just before is raised here, not later
                pass
        except BaseException as e:
            exc = e
        code = None
        terminal.binary()
        if eof:
            terminal.write(b"\x04")
        leave = isinstance(exc, SystemExit)
        if exc is not None and not leave:
            _print_exception(exc)
        if eof:
            terminal.write(b"\x04")
        if leave:
            raise _Reset

    def run_file(self, path):
        try:
            with open(path, "rb") as f:
                source = [f.read()]
        except OSError:
            return
        self.execute(source, path)

    # -- raw REPL

    def raw_repl(self):
        terminal.write(_RAW_BANNER + b">")
        line = bytearray()
        while True:
            c = terminal.read_byte()
            if c == _CTRL_A:
                if len(line) == 2 and line[0] == _CTRL_E:
                    self.raw_paste(line[1])
                    terminal.write(b">")
                else:
                    terminal.write(_RAW_BANNER + b">")
                line = bytearray()
            elif c == _CTRL_B:
                terminal.write(b"\r\n")
                self.raw = False
                return
            elif c == _CTRL_C:
                line = bytearray()
            elif c == _CTRL_D:
                terminal.write(b"OK")
                if not line:
                    terminal.write(b"\r\n")
                    raise _Reset
                source = [line]
                line = None
                self.execute(source, eof=True)
                terminal.write(b">")
                line = bytearray()
            else:
                line.append(c)

    def raw_paste(self, command):
        if command != 0x41:  # "A"
            terminal.write(b"R\x00")
            return
        terminal.write(b"R\x01" + bytes((_WINDOW & 0xFF, _WINDOW >> 8)) + b"\x01")
        source = []
        terminal.ready_only()
        try:
            source.append(self._paste())
            terminal.binary()
            terminal.write(b"\x04")
        except _Interrupted:
            terminal.binary()
            terminal.write(b"\x04\x04KeyboardInterrupt: \r\n\x04")
            return
        except MemoryError as e:
            gc.collect()
            terminal.write(b"\x04")
            _print_exception(e)
            terminal.write(b"\x04")
            return
        self.execute(source, eof=True)

    def _paste(self):
        chunk = bytearray(256)
        view = memoryview(chunk)
        text = bytearray()
        used = 0
        while True:
            n = terminal.read_some(chunk)
            got = bytes(view[:n])
            end = got.find(b"\x04")
            stop = got.find(b"\x03")
            if stop >= 0 and (end < 0 or stop < end):
                terminal.unread(got[stop + 1 :])
                raise _Interrupted
            try:
                text.extend(got if end < 0 else got[:end])
                if end >= 0:
                    terminal.unread(got[end + 1 :])
                    return text
            except MemoryError:
                text = None
                self._abort_paste(got[end + 1 :] if end >= 0 else None)
                raise
            used += n
            while used >= _WINDOW:
                used -= _WINDOW
                terminal.write(b"\x01")

    def _abort_paste(self, rest):
        """Tell the host to stop and take in what it still sends, until its own Ctrl-D (`rest` is
        what came behind that one already, or None)."""
        terminal.binary()
        terminal.write(b"\x04")
        if rest is not None:
            terminal.unread(rest)
            return
        while terminal.read_byte() != _CTRL_D:
            pass

    # -- friendly REPL

    def banner(self):
        version = sys.version.split("; ", 1)[-1]
        terminal.write(version.encode() + b"; " + sys.implementation._machine.encode())
        terminal.write(b'\r\nType "help()" for more information.\r\n')

    def friendly_repl(self):
        self.banner()
        while True:
            c, line = self.editor.read(b">>> ")
            if c == _CTRL_A:
                terminal.write(b"\r\n")
                self.raw = True
                return
            if c == _CTRL_B:
                terminal.write(b"\r\n")
                self.banner()
            elif c == _CTRL_C:
                terminal.write(b"\r\n")
            elif c == _CTRL_D:
                terminal.write(b"\r\n")
                raise _Reset
            elif c == _CTRL_E:
                self.paste_mode()
            else:
                self.statement(line)

    def statement(self, line):
        while lineedit.continues(line):
            c, more = self.editor.read(b"... ")
            if c == _CTRL_C:
                terminal.write(b"\r\n")
                return
            if c == _CTRL_D:
                more = b""
                terminal.write(b"\r\n")
            line = line + b"\n" + more
        if line.strip():
            self.execute([line], mode="single")

    def paste_mode(self):
        terminal.write(b"\r\npaste mode; Ctrl-C to cancel, Ctrl-D to finish\r\n=== ")
        text = bytearray()
        while True:
            c = terminal.read_byte()
            if c == _CTRL_C:
                terminal.write(b"\r\n")
                return
            if c == _CTRL_D:
                terminal.write(b"\r\n")
                self.execute([text])
                return
            if c == 13:
                text.append(10)
                terminal.write(b"\r\n=== ")
            else:
                text.append(c)
                terminal.write(bytes((c,)))

    # -- life

    def boot(self):
        self.run_file("/boot.py")
        if not self.raw:
            self.run_file("/main.py")

    def loop(self):
        while True:
            if self.raw:
                self.raw_repl()
            else:
                self.friendly_repl()


def _mount(root):
    vfs.umount("/")
    vfs.mount(boardfs.BoardFs(root), "/")


def serve(user):
    """Serve until a reset. `user` is the namespace that the code runs in."""
    root, state, mode, unique_id, report = sys.argv[1:6]
    shim_machine._state = vfs.VfsPosix(state)
    shim_machine._state.mount(False, False)
    shim_machine._id = binascii.unhexlify(unique_id)
    _mount(root)
    sys.argv[:] = [""]
    sys.path[:] = ["", ".frozen", "/lib"]
    sys.modules.clear()
    sys.modules["micropython"] = shim_micropython
    sys.modules["machine"] = shim_machine
    for name in list(user):
        if name != "__name__":
            del user[name]
    gc.collect()
    server = Server(user, mode == "raw")
    if report:
        terminal.write(_READY)
    try:
        server.boot()
        server.loop()
    except _Reset:
        pass
    except EOFError:
        sys.exit(0)
    if shim_machine._reset:
        sys.exit(EXIT_HARD)
    terminal.write(b"MPY: soft reboot\r\n")
    sys.exit(EXIT_SOFT_RAW if server.raw else EXIT_SOFT_FRIENDLY)
