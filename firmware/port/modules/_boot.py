"""Mount the RAM disk, which survives soft and hard resets; format it when it holds no file system."""

import vfs
from ramdisk import RAMDisk


def _mount():
    disk = RAMDisk()
    try:
        vfs.mount(disk, "/")
    except OSError:
        vfs.VfsLfs2.mkfs(disk)
        vfs.mount(disk, "/")


_mount()
