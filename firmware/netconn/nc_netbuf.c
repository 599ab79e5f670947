// netconn: Netbuf, received data in lwIP's own memory.
#include "netconn.h"

// Lock held.
void netbuf_release(netbuf_obj_t *nb) {
    if (nb->p != NULL) {
        pbuf_free(nb->p);
        nb->p = nb->cur = NULL;
    }
}

static mp_obj_t netbuf_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw, const mp_obj_t *args) {
    (void)args;
    mp_arg_check_num(n_args, n_kw, 0, 0, false);
    netbuf_obj_t *self = mp_obj_malloc_with_finaliser(netbuf_obj_t, type);
    self->p = self->cur = NULL;
    self->port = 0;
    ip_addr_set_zero(&self->addr);
    return MP_OBJ_FROM_PTR(self);
}

// The part shown now. Read only: the memory is lwIP's, and a view may outlive free().
static mp_int_t netbuf_get_buffer(mp_obj_t self_in, mp_buffer_info_t *bufinfo, mp_uint_t flags) {
    netbuf_obj_t *self = MP_OBJ_TO_PTR(self_in);
    if (flags & MP_BUFFER_WRITE) {
        return 1;
    }
    bufinfo->buf = self->cur != NULL ? self->cur->payload : NULL;
    bufinfo->len = self->cur != NULL ? self->cur->len : 0;
    bufinfo->typecode = 'B';
    return 0;
}

static mp_obj_t netbuf_unary_op(mp_unary_op_t op, mp_obj_t self_in) {
    netbuf_obj_t *self = MP_OBJ_TO_PTR(self_in);
    mp_uint_t len = self->cur != NULL ? self->cur->len : 0;
    switch (op) {
        case MP_UNARY_OP_LEN:
            return MP_OBJ_NEW_SMALL_INT(len);
        case MP_UNARY_OP_BOOL:
            return mp_obj_new_bool(len != 0);
        default:
            return MP_OBJ_NULL;
    }
}

static mp_obj_t netbuf_free(mp_obj_t self_in) {
    netbuf_obj_t *self = MP_OBJ_TO_PTR(self_in);
    MICROPY_PY_LWIP_ENTER
    netbuf_release(self);
    MICROPY_PY_LWIP_EXIT
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(netbuf_free_obj, netbuf_free);

// next() -> bool: show the next part of a chain (netbuf_next() of lwIP); False: that was the last.
static mp_obj_t netbuf_next(mp_obj_t self_in) {
    netbuf_obj_t *self = MP_OBJ_TO_PTR(self_in);
    if (self->cur == NULL || self->cur->next == NULL) {
        return mp_const_false;
    }
    self->cur = self->cur->next;
    return mp_const_true;
}
static MP_DEFINE_CONST_FUN_OBJ_1(netbuf_next_obj, netbuf_next);

// first(): back to the first part (netbuf_first() of lwIP)
static mp_obj_t netbuf_first(mp_obj_t self_in) {
    netbuf_obj_t *self = MP_OBJ_TO_PTR(self_in);
    self->cur = self->p;
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(netbuf_first_obj, netbuf_first);

// addr() -> (ip, port) that a datagram came from
static mp_obj_t netbuf_addr(mp_obj_t self_in) {
    netbuf_obj_t *self = MP_OBJ_TO_PTR(self_in);
    return nc_addr_tuple(&self->addr, self->port);
}
static MP_DEFINE_CONST_FUN_OBJ_1(netbuf_addr_obj, netbuf_addr);

static const mp_rom_map_elem_t netbuf_locals_dict_table[] = {
    { MP_ROM_QSTR(MP_QSTR___del__), MP_ROM_PTR(&netbuf_free_obj) },
    { MP_ROM_QSTR(MP_QSTR_free), MP_ROM_PTR(&netbuf_free_obj) },
    { MP_ROM_QSTR(MP_QSTR_next), MP_ROM_PTR(&netbuf_next_obj) },
    { MP_ROM_QSTR(MP_QSTR_first), MP_ROM_PTR(&netbuf_first_obj) },
    { MP_ROM_QSTR(MP_QSTR_addr), MP_ROM_PTR(&netbuf_addr_obj) },
};
static MP_DEFINE_CONST_DICT(netbuf_locals_dict, netbuf_locals_dict_table);

MP_DEFINE_CONST_OBJ_TYPE(
    netbuf_type,
    MP_QSTR_Netbuf,
    MP_TYPE_FLAG_NONE,
    make_new, netbuf_make_new,
    buffer, netbuf_get_buffer,
    unary_op, netbuf_unary_op,
    locals_dict, &netbuf_locals_dict
    );
