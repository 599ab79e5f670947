// ramdisk.RAMDisk: a block device over the machine's reset-proof memory, for littlefs.
#include <string.h>

#include "py/mperrno.h"
#include "py/runtime.h"
#include "extmod/vfs.h"

#include "machine.h"

#define BLOCK_SIZE (4096)

typedef struct _ramdisk_obj_t {
    mp_obj_base_t base;
} ramdisk_obj_t;

static const mp_obj_type_t ramdisk_type;
static const ramdisk_obj_t ramdisk_obj = { { &ramdisk_type } };

static mp_obj_t ramdisk_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw, const mp_obj_t *args) {
    (void)type;
    mp_arg_check_num(n_args, n_kw, 0, 0, false);
    return MP_OBJ_FROM_PTR(&ramdisk_obj);
}

// The bytes of (block, offset) for a buffer; raises OSError(EINVAL) outside the disk.
static uint8_t *ramdisk_at(size_t n_args, const mp_obj_t *args, size_t len) {
    uint64_t at = (uint64_t)mp_obj_get_int(args[1]) * BLOCK_SIZE;
    if (n_args > 3) {
        at += (uint32_t)mp_obj_get_int(args[3]);
    }
    if (at + len > MACHINE_RAMDISK_SIZE) {
        mp_raise_OSError(MP_EINVAL);
    }
    return machine_ramdisk + at;
}

static mp_obj_t ramdisk_readblocks(size_t n_args, const mp_obj_t *args) {
    mp_buffer_info_t buf;
    mp_get_buffer_raise(args[2], &buf, MP_BUFFER_WRITE);
    memcpy(buf.buf, ramdisk_at(n_args, args, buf.len), buf.len);
    return MP_OBJ_NEW_SMALL_INT(0);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(ramdisk_readblocks_obj, 3, 4, ramdisk_readblocks);

static mp_obj_t ramdisk_writeblocks(size_t n_args, const mp_obj_t *args) {
    mp_buffer_info_t buf;
    mp_get_buffer_raise(args[2], &buf, MP_BUFFER_READ);
    memcpy(ramdisk_at(n_args, args, buf.len), buf.buf, buf.len);
    return MP_OBJ_NEW_SMALL_INT(0);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(ramdisk_writeblocks_obj, 3, 4, ramdisk_writeblocks);

static mp_obj_t ramdisk_ioctl(mp_obj_t self_in, mp_obj_t cmd_in, mp_obj_t arg_in) {
    (void)self_in;
    (void)arg_in;
    switch (mp_obj_get_int(cmd_in)) {
        case MP_BLOCKDEV_IOCTL_INIT:
        case MP_BLOCKDEV_IOCTL_DEINIT:
        case MP_BLOCKDEV_IOCTL_SYNC:
        case MP_BLOCKDEV_IOCTL_BLOCK_ERASE:
            return MP_OBJ_NEW_SMALL_INT(0);
        case MP_BLOCKDEV_IOCTL_BLOCK_COUNT:
            return MP_OBJ_NEW_SMALL_INT(MACHINE_RAMDISK_SIZE / BLOCK_SIZE);
        case MP_BLOCKDEV_IOCTL_BLOCK_SIZE:
            return MP_OBJ_NEW_SMALL_INT(BLOCK_SIZE);
        default:
            return mp_const_none;
    }
}
static MP_DEFINE_CONST_FUN_OBJ_3(ramdisk_ioctl_obj, ramdisk_ioctl);

static const mp_rom_map_elem_t ramdisk_locals_dict_table[] = {
    { MP_ROM_QSTR(MP_QSTR_readblocks), MP_ROM_PTR(&ramdisk_readblocks_obj) },
    { MP_ROM_QSTR(MP_QSTR_writeblocks), MP_ROM_PTR(&ramdisk_writeblocks_obj) },
    { MP_ROM_QSTR(MP_QSTR_ioctl), MP_ROM_PTR(&ramdisk_ioctl_obj) },
};
static MP_DEFINE_CONST_DICT(ramdisk_locals_dict, ramdisk_locals_dict_table);

static MP_DEFINE_CONST_OBJ_TYPE(
    ramdisk_type,
    MP_QSTR_RAMDisk,
    MP_TYPE_FLAG_NONE,
    make_new, ramdisk_make_new,
    locals_dict, &ramdisk_locals_dict
    );

static const mp_rom_map_elem_t ramdisk_globals_table[] = {
    { MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_ramdisk) },
    { MP_ROM_QSTR(MP_QSTR_RAMDisk), MP_ROM_PTR(&ramdisk_type) },
};
static MP_DEFINE_CONST_DICT(ramdisk_globals, ramdisk_globals_table);

const mp_obj_module_t mp_module_ramdisk = {
    .base = { &mp_type_module },
    .globals = (mp_obj_dict_t *)&ramdisk_globals,
};
MP_REGISTER_MODULE(MP_QSTR_ramdisk, mp_module_ramdisk);
