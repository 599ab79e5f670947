# mypy: ignore-errors
"""The board's file system: one directory of the PC, seen as "/" and never left.

VfsPosix alone lets ".." climb out of its root and resolves relative names in the process's own
directory, so every path is made absolute here first. ilistdir() gives sizes, as FAT and littlefs do.
"""

import errno

import vfs


class BoardFs:
    def __init__(self, root):
        self._fs = vfs.VfsPosix(root)
        self._fs.mount(False, False)
        self._cwd = "/"

    def __repr__(self):
        return "<VfsPosix>"

    def _abs(self, path):
        if not path.startswith("/"):
            path = self._cwd + "/" + path
        parts = []
        for part in path.split("/"):
            if part == "..":
                if parts:
                    parts.pop()
            elif part and part != ".":
                parts.append(part)
        return "/" + "/".join(parts)

    def mount(self, readonly, mkfs):
        pass

    def umount(self):
        pass

    def open(self, path, mode):
        return self._fs.open(self._abs(path), mode)

    def chdir(self, path):
        path = self._abs(path)
        if not self._fs.stat(path)[0] & 0x4000:
            raise OSError(errno.ENOENT)
        self._cwd = path

    def getcwd(self):
        return self._cwd

    def ilistdir(self, path):
        path = self._abs(path)
        for name, kind, *_ in self._fs.ilistdir(path):
            try:
                size = self._fs.stat(path + "/" + name)[6] if kind == 0x8000 else 0
            except OSError:  # removed meanwhile
                size = 0
            yield (name, kind, 0, size)

    def mkdir(self, path):
        self._fs.mkdir(self._abs(path))

    def rmdir(self, path):
        self._fs.rmdir(self._abs(path))

    def remove(self, path):
        self._fs.remove(self._abs(path))

    def rename(self, old, new):
        self._fs.rename(self._abs(old), self._abs(new))

    def stat(self, path):
        return self._fs.stat(self._abs(path))

    def statvfs(self, path):
        return self._fs.statvfs(self._abs(path))
