// vfs.rom_ioctl(): one ROMFS segment in the machine's reset-proof memory (mpremote romfs deploy).
#include <string.h>

#include "py/mperrno.h"
#include "py/objarray.h"
#include "py/runtime.h"
#include "extmod/vfs.h"

#include "machine.h"

static const MP_DEFINE_MEMORYVIEW_OBJ(romfs_obj, 'B', 0, MACHINE_ROMFS_SIZE, (void *)machine_romfs);

mp_obj_t mp_vfs_rom_ioctl(size_t n_args, const mp_obj_t *args) {
    int cmd = mp_obj_get_int(args[0]);
    if (cmd == MP_VFS_ROM_IOCTL_GET_NUMBER_OF_SEGMENTS) {
        return MP_OBJ_NEW_SMALL_INT(1);
    }
    if (n_args < 2 || mp_obj_get_int(args[1]) != 0) {
        return MP_OBJ_NEW_SMALL_INT(-MP_EINVAL);
    }
    switch (cmd) {
        case MP_VFS_ROM_IOCTL_GET_SEGMENT:
            return MP_OBJ_FROM_PTR(&romfs_obj);
        case MP_VFS_ROM_IOCTL_WRITE_PREPARE:
            if (n_args < 3 || (mp_uint_t)mp_obj_get_int(args[2]) > MACHINE_ROMFS_SIZE) {
                return MP_OBJ_NEW_SMALL_INT(-MP_EINVAL);
            }
            return MP_OBJ_NEW_SMALL_INT(4); // the smallest write
        case MP_VFS_ROM_IOCTL_WRITE: {
            if (n_args < 4) {
                return MP_OBJ_NEW_SMALL_INT(-MP_EINVAL);
            }
            mp_uint_t offset = mp_obj_get_int(args[2]);
            mp_buffer_info_t buf;
            mp_get_buffer_raise(args[3], &buf, MP_BUFFER_READ);
            if (offset > MACHINE_ROMFS_SIZE || buf.len > MACHINE_ROMFS_SIZE - offset) {
                return MP_OBJ_NEW_SMALL_INT(-MP_EINVAL);
            }
            memcpy(machine_romfs + offset, buf.buf, buf.len);
            return MP_OBJ_NEW_SMALL_INT(0);
        }
        case MP_VFS_ROM_IOCTL_WRITE_COMPLETE:
            return MP_OBJ_NEW_SMALL_INT(0);
        default:
            return MP_OBJ_NEW_SMALL_INT(-MP_EINVAL);
    }
}
