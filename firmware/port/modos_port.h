// os.urandom (included by extmod/modos.c).
#include "py/mphal.h"

static mp_obj_t mp_os_urandom(mp_obj_t num) {
    mp_int_t n = mp_obj_get_int(num);
    if (n < 0) {
        mp_raise_ValueError(NULL);
    }
    vstr_t vstr;
    vstr_init_len(&vstr, n);
    for (mp_int_t i = 0; i < n; i++) {
        vstr.buf[i] = (char)(port_random_u32() >> 11);
    }
    return mp_obj_new_bytes_from_vstr(&vstr);
}
static MP_DEFINE_CONST_FUN_OBJ_1(mp_os_urandom_obj, mp_os_urandom);
