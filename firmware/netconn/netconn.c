// netconn: the module, its types, and what TCP and UDP share.
#include <string.h>

#include "netconn.h"

#include "lwip/init.h"
#include "lwip/priv/tcp_priv.h"

// ---------------------------------------------------------------- shared

// lwIP 2.x err_t -> errno
int nc_errno(int8_t err) {
    static const uint8_t table[] = {
        [0] = 0, [-ERR_MEM] = MP_ENOMEM, [-ERR_BUF] = MP_ENOBUFS, [-ERR_TIMEOUT] = MP_ETIMEDOUT,
        [-ERR_RTE] = MP_EHOSTUNREACH, [-ERR_INPROGRESS] = MP_EINPROGRESS, [-ERR_VAL] = MP_EINVAL,
        [-ERR_WOULDBLOCK] = MP_EAGAIN, [-ERR_USE] = MP_EADDRINUSE, [-ERR_ALREADY] = MP_EALREADY,
        [-ERR_ISCONN] = MP_EISCONN, [-ERR_CONN] = MP_ENOTCONN, [-ERR_IF] = MP_EIO,
        [-ERR_ABRT] = MP_ECONNABORTED, [-ERR_RST] = MP_ECONNRESET, [-ERR_CLSD] = MP_ENOTCONN,
        [-ERR_ARG] = MP_EINVAL,
    };
    return err <= 0 && -err < (int)MP_ARRAY_SIZE(table) ? table[-err] : MP_EIO;
}

int nc_wait(const nc_wait_t *w) {
    if (w->timeout_ms == 0) {
        return MP_EAGAIN;
    }
    if (w->timeout_ms > 0 && mp_hal_ticks_ms() - w->start >= (mp_uint_t)w->timeout_ms) {
        return MP_ETIMEDOUT;
    }
    mp_event_wait_ms(1);
    return 0;
}

// Control blocks that lwIP holds. Linked and unlinked by the thread only.
MP_REGISTER_ROOT_POINTER(struct _nc_t *netconn_list);

void nc_reap(void) {
    for (nc_t **at = &MP_STATE_VM(netconn_list); *at != NULL;) {
        nc_t *c = *at;
        if (c->pcb.tcp == NULL) {
            *at = c->next;
            c->next = NULL;
        } else {
            at = &c->next;
        }
    }
}

// Soft reset: the heap goes, lwIP stays. Nothing of lwIP may point here any more.
static mp_obj_t block_del(mp_obj_t self_in) {
    nc_t *c = MP_OBJ_TO_PTR(self_in);
    MICROPY_PY_LWIP_ENTER
    if (c->kind == NC_TCP) {
        nc_tcp_close(c, true);
    } else {
        nc_udp_close(c);
    }
    MICROPY_PY_LWIP_EXIT
    nc_reap();
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(block_del_obj, block_del);

static const mp_rom_map_elem_t block_locals_dict_table[] = {
    { MP_ROM_QSTR(MP_QSTR___del__), MP_ROM_PTR(&block_del_obj) },
};
static MP_DEFINE_CONST_DICT(block_locals_dict, block_locals_dict_table);

MP_DEFINE_CONST_OBJ_TYPE(
    nc_block_type,
    MP_QSTR_block,
    MP_TYPE_FLAG_NONE,
    locals_dict, &block_locals_dict
    );

nc_t *nc_new(int kind, int depth, int backlog) {
    nc_reap();
    nc_t *c = mp_obj_malloc_with_finaliser(nc_t, &nc_block_type);
    memset((uint8_t *)c + sizeof(mp_obj_base_t), 0, sizeof(*c) - sizeof(mp_obj_base_t));
    c->kind = (uint8_t)kind;
    if (depth > 0) {
        c->depth = (uint8_t)depth;
        c->dgrams = m_new0(nc_dgram_t, depth);
    }
    (void)backlog;
    return c;
}

static void link_block(nc_t *c) {
    c->next = MP_STATE_VM(netconn_list);
    MP_STATE_VM(netconn_list) = c;
}

mp_obj_t nc_addr_tuple(const ip_addr_t *addr, uint16_t port) {
    char text[IPADDR_STRLEN_MAX];
    ipaddr_ntoa_r(addr, text, sizeof(text));
    mp_obj_t items[2] = { mp_obj_new_str_from_cstr(text), MP_OBJ_NEW_SMALL_INT(port) };
    return mp_obj_new_tuple(2, items);
}

// (ip, port): names are resolved with socket.getaddrinfo() before.
uint16_t nc_parse_addr(mp_obj_t tuple, ip_addr_t *addr) {
    mp_obj_t *items;
    mp_obj_get_array_fixed_n(tuple, 2, &items);
    const char *text = mp_obj_str_get_str(items[0]);
    if (*text == 0) {
        ip_addr_copy(*addr, *IP_ADDR_ANY);
    } else if (!ipaddr_aton(text, addr)) {
        mp_raise_ValueError(MP_ERROR_TEXT("not an IP address (use socket.getaddrinfo for names)"));
    }
    mp_int_t port = mp_obj_get_int(items[1]);
    if (port < 0 || port > 65535) {
        mp_raise_ValueError(MP_ERROR_TEXT("port out of range"));
    }
    return (uint16_t)port;
}

void nc_check(nc_t *c) {
    if (c->err != ERR_OK) {
        mp_raise_OSError(nc_errno(c->err));
    }
    if (c->pcb.tcp == NULL) {
        mp_raise_OSError(MP_EBADF);
    }
}

// A method's answer to bytes or an error: None when it would block.
static mp_obj_t answer(mp_uint_t n, int errcode) {
    if (n != MP_STREAM_ERROR) {
        return mp_obj_new_int_from_uint(n);
    }
    if (errcode == MP_EAGAIN) {
        return mp_const_none;
    }
    mp_raise_OSError(errcode);
}

// ---------------------------------------------------------------- Netconn

static netconn_obj_t *new_handle(nc_t *c) {
    netconn_obj_t *self = mp_obj_malloc_with_finaliser(netconn_obj_t, &netconn_type);
    self->nc = c;
    self->timeout_ms = -1;
    self->flags = NC_COPY;
    self->header = 0xffff;
    return self;
}

// Netconn(type=NETCONN_TCP, depth=8): depth is how many datagrams a UDP connection keeps (1..255).
static mp_obj_t netconn_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw, const mp_obj_t *all_args) {
    (void)type;
    static const mp_arg_t allowed_args[] = {
        { MP_QSTR_type, MP_ARG_INT, {.u_int = NC_TCP} },
        { MP_QSTR_depth, MP_ARG_INT, {.u_int = 8} },
    };
    mp_arg_val_t args[MP_ARRAY_SIZE(allowed_args)];
    mp_arg_parse_all_kw_array(n_args, n_kw, all_args, MP_ARRAY_SIZE(allowed_args), allowed_args, args);
    int kind = args[0].u_int;
    if ((kind != NC_TCP && kind != NC_UDP) || args[1].u_int < 1 || args[1].u_int > 255) {
        mp_raise_ValueError(NULL);
    }
    nc_t *c = nc_new(kind, kind == NC_UDP ? args[1].u_int : 0, 0);
    netconn_obj_t *self = new_handle(c); // everything is allocated before lwIP is asked
    MICROPY_PY_LWIP_ENTER
    if (kind == NC_TCP) {
        struct tcp_pcb *pcb = tcp_new_ip_type(IPADDR_TYPE_V4);
        if (pcb != NULL) {
            nc_tcp_attach(c, pcb);
        }
    } else {
        c->pcb.udp = udp_new_ip_type(IPADDR_TYPE_V4);
        if (c->pcb.udp != NULL) {
            udp_recv(c->pcb.udp, nc_udp_recv_cb, c);
        }
    }
    MICROPY_PY_LWIP_EXIT
    if (c->pcb.tcp == NULL) {
        mp_raise_OSError(MP_ENOMEM);
    }
    link_block(c);
    return MP_OBJ_FROM_PTR(self);
}

static void netconn_print(const mp_print_t *print, mp_obj_t self_in, mp_print_kind_t kind) {
    (void)kind;
    nc_t *c = ((netconn_obj_t *)MP_OBJ_TO_PTR(self_in))->nc;
    mp_printf(print, "<Netconn %s state=%d unacked=%u>", c->kind == NC_TCP ? "TCP" : "UDP", c->state,
        (unsigned)(c->tx_queued - c->tx_acked));
}

static mp_obj_t netconn_bind(mp_obj_t self_in, mp_obj_t addr_in) {
    nc_t *c = ((netconn_obj_t *)MP_OBJ_TO_PTR(self_in))->nc;
    ip_addr_t addr;
    uint16_t port = nc_parse_addr(addr_in, &addr);
    nc_check(c);
    err_t err;
    MICROPY_PY_LWIP_ENTER
    if (c->kind == NC_TCP) {
        ip_set_option(c->pcb.tcp, SOF_REUSEADDR);
        err = tcp_bind(c->pcb.tcp, &addr, port);
    } else {
        ip_set_option(c->pcb.udp, SOF_REUSEADDR);
        err = udp_bind(c->pcb.udp, &addr, port);
    }
    MICROPY_PY_LWIP_EXIT
    if (err != ERR_OK) {
        mp_raise_OSError(nc_errno(err));
    }
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(netconn_bind_obj, netconn_bind);

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t err) {
    (void)pcb;
    (void)err;
    ((nc_t *)arg)->state = NC_CONNECTED;
    return ERR_OK;
}

// connect((ip, port)). Non-blocking: raises EINPROGRESS, then poll for writing.
static mp_obj_t netconn_connect(mp_obj_t self_in, mp_obj_t addr_in) {
    netconn_obj_t *self = MP_OBJ_TO_PTR(self_in);
    nc_t *c = self->nc;
    ip_addr_t addr;
    uint16_t port = nc_parse_addr(addr_in, &addr);
    if (c->state == NC_CONNECTED && c->kind == NC_TCP) {
        mp_raise_OSError(MP_EISCONN);
    }
    nc_check(c);
    err_t err = ERR_OK;
    MICROPY_PY_LWIP_ENTER
    if (c->kind == NC_UDP) {
        err = udp_connect(c->pcb.udp, &addr, port);
        c->state = NC_CONNECTED;
    } else if (c->state == NC_NEW) {
        c->state = NC_CONNECTING;
        err = tcp_connect(c->pcb.tcp, &addr, port, on_connected);
        if (err != ERR_OK) {
            c->state = NC_NEW;
        }
    }
    MICROPY_PY_LWIP_EXIT
    if (err != ERR_OK) {
        mp_raise_OSError(nc_errno(err));
    }
    nc_wait_t wait = nc_wait_begin(self->timeout_ms);
    while (c->state == NC_CONNECTING) {
        int fail = nc_wait(&wait);
        if (fail != 0) {
            mp_raise_OSError(fail == MP_EAGAIN ? MP_EINPROGRESS : fail);
        }
    }
    nc_check(c);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(netconn_connect_obj, netconn_connect);

static mp_obj_t netconn_listen(size_t n_args, const mp_obj_t *args) {
    nc_t *c = ((netconn_obj_t *)MP_OBJ_TO_PTR(args[0]))->nc;
    mp_int_t backlog = n_args > 1 ? mp_obj_get_int(args[1]) : 2;
    backlog = MAX(1, MIN(backlog, NETCONN_BACKLOG_MAX));
    nc_check(c);
    if (c->kind != NC_TCP) {
        mp_raise_OSError(MP_EOPNOTSUPP);
    }
    if (c->state != NC_NEW) {
        mp_raise_OSError(MP_EISCONN);
    }
    c->pending = m_new0(nc_pending_t, backlog);
    c->backlog = (uint8_t)backlog;
    err_t err = ERR_OK;
    MICROPY_PY_LWIP_ENTER
    // lwIP frees the full pcb and makes a smaller one; the old one must not call back.
    struct tcp_pcb *pcb = tcp_listen_with_backlog_and_err(c->pcb.tcp, (u8_t)backlog, &err);
    if (pcb != NULL) {
        c->pcb.tcp = pcb;
        c->state = NC_LISTENING;
        tcp_arg(pcb, c);
        tcp_accept(pcb, nc_tcp_accept_cb);
    }
    MICROPY_PY_LWIP_EXIT
    if (pcb == NULL) {
        mp_raise_OSError(nc_errno(err));
    }
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(netconn_listen_obj, 1, 2, netconn_listen);

static bool pending_any(nc_t *c) {
    for (size_t i = 0; i < c->backlog; i++) {
        if (c->pending[i].pcb != NULL) {
            return true;
        }
    }
    return false;
}

// accept() -> (Netconn, (ip, port)), or None when nobody waits and it must not.
static mp_obj_t netconn_accept(mp_obj_t self_in) {
    netconn_obj_t *self = MP_OBJ_TO_PTR(self_in);
    nc_t *c = self->nc;
    nc_check(c);
    if (c->state != NC_LISTENING) {
        mp_raise_OSError(MP_EINVAL);
    }
    nc_wait_t wait = nc_wait_begin(self->timeout_ms);
    while (!pending_any(c)) {
        int fail = nc_wait(&wait);
        if (fail == MP_EAGAIN) {
            return mp_const_none;
        } else if (fail != 0) {
            mp_raise_OSError(fail);
        }
        nc_check(c);
    }
    nc_t *conn = nc_new(NC_TCP, 0, 0);
    netconn_obj_t *handle = new_handle(conn);
    ip_addr_t addr;
    uint16_t port = 0;
    MICROPY_PY_LWIP_ENTER
    for (size_t i = 0; i < c->backlog; i++) {
        nc_pending_t *slot = &c->pending[c->pending_get];
        c->pending_get = (uint8_t)((c->pending_get + 1) % c->backlog);
        struct tcp_pcb *pcb = slot->pcb;
        if (pcb == NULL) {
            continue;
        }
        slot->pcb = NULL;
        nc_tcp_attach(conn, pcb);
        tcp_backlog_accepted(pcb);
        conn->state = NC_CONNECTED;
        conn->eof = slot->eof;
        conn->rx_head = conn->rx_tail = slot->rx;
        slot->rx = NULL;
        while (conn->rx_tail != NULL && conn->rx_tail->next != NULL) {
            conn->rx_tail = conn->rx_tail->next;
        }
        ip_addr_copy(addr, pcb->remote_ip);
        port = pcb->remote_port;
        break;
    }
    MICROPY_PY_LWIP_EXIT
    if (conn->pcb.tcp == NULL) {
        return mp_const_none; // it went away while we allocated
    }
    link_block(conn);
    mp_obj_t items[2] = { MP_OBJ_FROM_PTR(handle), nc_addr_tuple(&addr, port) };
    return mp_obj_new_tuple(2, items);
}
static MP_DEFINE_CONST_FUN_OBJ_1(netconn_accept_obj, netconn_accept);

static mp_uint_t write_tcp(netconn_obj_t *self, mp_obj_t owner, const void *buf, size_t len, unsigned flags, int *errcode) {
    if (self->nc->kind != NC_TCP) {
        *errcode = MP_EOPNOTSUPP;
        return MP_STREAM_ERROR;
    }
    return nc_tcp_write(self->nc, owner, buf, buf, len, flags, self->timeout_ms, errcode);
}

static mp_obj_t send_udp(netconn_obj_t *self, mp_obj_t buf_in, size_t header, const ip_addr_t *addr, uint16_t port) {
    mp_buffer_info_t buf;
    mp_get_buffer_raise(buf_in, &buf, MP_BUFFER_READ);
    int err = MP_EOPNOTSUPP;
    if (self->nc->kind == NC_UDP) {
        err = nc_udp_send(self->nc, buf_in, buf.buf, buf.len, MIN(header, buf.len), addr, port);
    }
    if (err == MP_ENOBUFS && self->timeout_ms == 0) {
        return mp_const_none;
    }
    if (err != 0) {
        mp_raise_OSError(err);
    }
    return MP_OBJ_NEW_SMALL_INT(buf.len);
}

// write(buf, flags=NETCONN_COPY) -> bytes taken, None when none and it must not wait.
// NETCONN_NOCOPY: buf must not change, and must not be resized, until flush() or unacked() say so.
// UDP: one datagram, as send(buf, header) with the header of config(header=).
static mp_obj_t netconn_write(size_t n_args, const mp_obj_t *args) {
    netconn_obj_t *self = MP_OBJ_TO_PTR(args[0]);
    if (self->nc->kind == NC_UDP) {
        return send_udp(self, args[1], self->header, NULL, 0);
    }
    mp_buffer_info_t buf;
    mp_get_buffer_raise(args[1], &buf, MP_BUFFER_READ);
    unsigned flags = n_args > 2 ? (unsigned)mp_obj_get_int(args[2]) : self->flags;
    int errcode = 0;
    mp_uint_t n = write_tcp(self, args[1], buf.buf, buf.len, flags, &errcode);
    return answer(n, errcode);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(netconn_write_obj, 2, 3, netconn_write);

static mp_obj_t netconn_unacked(mp_obj_t self_in) {
    nc_t *c = ((netconn_obj_t *)MP_OBJ_TO_PTR(self_in))->nc;
    return mp_obj_new_int_from_uint(c->tx_queued - c->tx_acked + c->pump_credit);
}
static MP_DEFINE_CONST_FUN_OBJ_1(netconn_unacked_obj, netconn_unacked);

// flush(): wait until everything written is acknowledged. None: not yet, and it must not wait.
static mp_obj_t netconn_flush(mp_obj_t self_in) {
    netconn_obj_t *self = MP_OBJ_TO_PTR(self_in);
    nc_t *c = self->nc;
    MICROPY_PY_LWIP_ENTER
    if (c->kind == NC_TCP && c->pcb.tcp != NULL && c->state == NC_CONNECTED) {
        tcp_output(c->pcb.tcp);
    }
    MICROPY_PY_LWIP_EXIT
    nc_wait_t wait = nc_wait_begin(self->timeout_ms);
    while (c->tx_queued != c->tx_acked || c->pump_credit > 0) {
        int fail = nc_wait(&wait);
        if (fail == MP_EAGAIN) {
            return mp_const_none;
        } else if (fail != 0) {
            mp_raise_OSError(fail);
        }
    }
    if (c->err != ERR_OK) {
        mp_raise_OSError(nc_errno(c->err));
    }
    return mp_const_true;
}
static MP_DEFINE_CONST_FUN_OBJ_1(netconn_flush_obj, netconn_flush);

static mp_uint_t read_any(netconn_obj_t *self, void *buf, size_t len, int *errcode) {
    if (self->nc->kind == NC_TCP) {
        return nc_tcp_read(self->nc, buf, len, self->timeout_ms, errcode);
    }
    netbuf_obj_t nb = { { &netbuf_type }, NULL, NULL, { 0 }, 0 };
    mp_uint_t n = nc_udp_recv(self->nc, &nb, self->timeout_ms, errcode);
    if (n != MP_STREAM_ERROR) {
        n = pbuf_copy_partial(nb.p, buf, (u16_t)MIN(len, 0xffffu), 0);
        MICROPY_PY_LWIP_ENTER
        netbuf_release(&nb);
        MICROPY_PY_LWIP_EXIT
    }
    return n;
}

// readinto(buf) -> bytes, 0 at the end of the stream, None when nothing is there and it must not wait.
// TCP: what is there, at most len(buf). UDP: one datagram, cut to len(buf).
static mp_obj_t netconn_readinto(mp_obj_t self_in, mp_obj_t buf_in) {
    mp_buffer_info_t buf;
    mp_get_buffer_raise(buf_in, &buf, MP_BUFFER_WRITE);
    int errcode = 0;
    mp_uint_t n = read_any(MP_OBJ_TO_PTR(self_in), buf.buf, buf.len, &errcode);
    return answer(n, errcode);
}
static MP_DEFINE_CONST_FUN_OBJ_2(netconn_readinto_obj, netconn_readinto);

// recv(netbuf) -> bytes now in netbuf (what it held before is freed), 0 at the end of the stream, None.
static mp_obj_t netconn_recv(mp_obj_t self_in, mp_obj_t nb_in) {
    netconn_obj_t *self = MP_OBJ_TO_PTR(self_in);
    if (!mp_obj_is_type(nb_in, &netbuf_type)) {
        mp_raise_TypeError(MP_ERROR_TEXT("recv wants a Netbuf"));
    }
    netbuf_obj_t *nb = MP_OBJ_TO_PTR(nb_in);
    int errcode = 0;
    mp_uint_t n = self->nc->kind == NC_TCP ? nc_tcp_recv(self->nc, nb, self->timeout_ms, &errcode)
        : nc_udp_recv(self->nc, nb, self->timeout_ms, &errcode);
    return answer(n, errcode);
}
static MP_DEFINE_CONST_FUN_OBJ_2(netconn_recv_obj, netconn_recv);

// send(buf, header=len(buf)) -> len(buf): one datagram to the connected peer. The first `header` bytes
// are copied; the rest is sent from where it lies.
static mp_obj_t netconn_send(size_t n_args, const mp_obj_t *args) {
    size_t header = n_args > 2 ? (size_t)mp_obj_get_int(args[2]) : SIZE_MAX;
    return send_udp(MP_OBJ_TO_PTR(args[0]), args[1], header, NULL, 0);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(netconn_send_obj, 2, 3, netconn_send);

// sendto(buf, (ip, port), header=len(buf)) -> len(buf)
static mp_obj_t netconn_sendto(size_t n_args, const mp_obj_t *args) {
    ip_addr_t addr;
    uint16_t port = nc_parse_addr(args[2], &addr);
    size_t header = n_args > 3 ? (size_t)mp_obj_get_int(args[3]) : SIZE_MAX;
    return send_udp(MP_OBJ_TO_PTR(args[0]), args[1], header, &addr, port);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(netconn_sendto_obj, 3, 4, netconn_sendto);

static mp_obj_t netconn_settimeout(mp_obj_t self_in, mp_obj_t timeout_in) {
    netconn_obj_t *self = MP_OBJ_TO_PTR(self_in);
    if (timeout_in == mp_const_none) {
        self->timeout_ms = -1;
    } else {
        #if MICROPY_PY_BUILTINS_FLOAT
        self->timeout_ms = (mp_int_t)(MICROPY_FLOAT_CONST(1000.0) * mp_obj_get_float(timeout_in));
        #else
        self->timeout_ms = 1000 * mp_obj_get_int(timeout_in);
        #endif
    }
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(netconn_settimeout_obj, netconn_settimeout);

static mp_obj_t netconn_setblocking(mp_obj_t self_in, mp_obj_t blocking) {
    ((netconn_obj_t *)MP_OBJ_TO_PTR(self_in))->timeout_ms = mp_obj_is_true(blocking) ? -1 : 0;
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(netconn_setblocking_obj, netconn_setblocking);

// config(nodelay=, tos=, ttl=, flags=, header=): flags and header of write() when it gets none
static mp_obj_t netconn_config(size_t n_args, const mp_obj_t *pos_args, mp_map_t *kw_args) {
    static const mp_arg_t allowed_args[] = {
        { MP_QSTR_nodelay, MP_ARG_KW_ONLY | MP_ARG_OBJ, {.u_rom_obj = MP_ROM_NONE} },
        { MP_QSTR_tos, MP_ARG_KW_ONLY | MP_ARG_INT, {.u_int = -1} },
        { MP_QSTR_ttl, MP_ARG_KW_ONLY | MP_ARG_INT, {.u_int = -1} },
        { MP_QSTR_flags, MP_ARG_KW_ONLY | MP_ARG_INT, {.u_int = -1} },
        { MP_QSTR_header, MP_ARG_KW_ONLY | MP_ARG_INT, {.u_int = -1} },
    };
    netconn_obj_t *self = MP_OBJ_TO_PTR(pos_args[0]);
    nc_t *c = self->nc;
    mp_arg_val_t args[MP_ARRAY_SIZE(allowed_args)];
    mp_arg_parse_all(n_args - 1, pos_args + 1, kw_args, MP_ARRAY_SIZE(allowed_args), allowed_args, args);
    nc_check(c);
    if (args[1].u_int > 255 || args[2].u_int > 255 || args[3].u_int > (NC_COPY | NC_MORE) || args[4].u_int > 0xffff) {
        mp_raise_ValueError(NULL);
    }
    if (args[3].u_int >= 0) {
        self->flags = (uint16_t)args[3].u_int;
    }
    if (args[4].u_int >= 0) {
        self->header = (uint16_t)args[4].u_int;
    }
    MICROPY_PY_LWIP_ENTER
    if (c->kind == NC_TCP && args[0].u_obj != mp_const_none && c->state != NC_LISTENING) {
        if (mp_obj_is_true(args[0].u_obj)) {
            tcp_nagle_disable(c->pcb.tcp);
        } else {
            tcp_nagle_enable(c->pcb.tcp);
        }
    }
    // ip_pcb members come first in both kinds of pcb
    if (args[1].u_int >= 0) {
        ((struct ip_pcb *)c->pcb.tcp)->tos = (u8_t)args[1].u_int;
    }
    if (args[2].u_int >= 0) {
        ((struct ip_pcb *)c->pcb.tcp)->ttl = (u8_t)args[2].u_int;
    }
    MICROPY_PY_LWIP_EXIT
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_KW(netconn_config_obj, 1, netconn_config);

static void close_block(nc_t *c, bool abort) {
    MICROPY_PY_LWIP_ENTER
    if (c->kind == NC_TCP) {
        nc_tcp_close(c, abort);
    } else {
        nc_udp_close(c);
    }
    MICROPY_PY_LWIP_EXIT
}

// close(): data in flight is still delivered; its buffers stay alive until then.
static mp_obj_t netconn_close(mp_obj_t self_in) {
    close_block(((netconn_obj_t *)MP_OBJ_TO_PTR(self_in))->nc, false);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(netconn_close_obj, netconn_close);

// abort(): reset the connection now (RST); data in flight is lost.
static mp_obj_t netconn_abort(mp_obj_t self_in) {
    close_block(((netconn_obj_t *)MP_OBJ_TO_PTR(self_in))->nc, true);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(netconn_abort_obj, netconn_abort);

// shutdown(): send FIN after what was written; receiving goes on.
static mp_obj_t netconn_shutdown(mp_obj_t self_in) {
    nc_t *c = ((netconn_obj_t *)MP_OBJ_TO_PTR(self_in))->nc;
    nc_check(c);
    if (c->kind != NC_TCP || c->state != NC_CONNECTED) {
        mp_raise_OSError(MP_ENOTCONN);
    }
    err_t err = ERR_OK;
    MICROPY_PY_LWIP_ENTER
    if (!c->tx_shut) {
        err = tcp_shutdown(c->pcb.tcp, 0, 1);
        c->tx_shut = err == ERR_OK;
    }
    MICROPY_PY_LWIP_EXIT
    if (err != ERR_OK) {
        mp_raise_OSError(nc_errno(err));
    }
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(netconn_shutdown_obj, netconn_shutdown);

static mp_obj_t endpoint(mp_obj_t self_in, bool remote) {
    nc_t *c = ((netconn_obj_t *)MP_OBJ_TO_PTR(self_in))->nc;
    if (c->pcb.tcp == NULL) {
        return mp_const_none;
    }
    ip_addr_t addr;
    uint16_t port = 0;
    MICROPY_PY_LWIP_ENTER
    if (remote && c->state == NC_LISTENING) {
        ip_addr_set_zero(&addr);
    } else if (c->kind == NC_TCP) {
        ip_addr_copy(addr, remote ? c->pcb.tcp->remote_ip : c->pcb.tcp->local_ip);
        port = remote ? c->pcb.tcp->remote_port : c->pcb.tcp->local_port;
    } else {
        ip_addr_copy(addr, remote ? c->pcb.udp->remote_ip : c->pcb.udp->local_ip);
        port = remote ? c->pcb.udp->remote_port : c->pcb.udp->local_port;
    }
    MICROPY_PY_LWIP_EXIT
    return nc_addr_tuple(&addr, port);
}

static mp_obj_t netconn_local(mp_obj_t self_in) {
    return endpoint(self_in, false);
}
static MP_DEFINE_CONST_FUN_OBJ_1(netconn_local_obj, netconn_local);

static mp_obj_t netconn_remote(mp_obj_t self_in) {
    return endpoint(self_in, true);
}
static MP_DEFINE_CONST_FUN_OBJ_1(netconn_remote_obj, netconn_remote);

// err() -> errno of what the connection died of, 0 while it lives
static mp_obj_t netconn_err_(mp_obj_t self_in) {
    return MP_OBJ_NEW_SMALL_INT(nc_errno(((netconn_obj_t *)MP_OBJ_TO_PTR(self_in))->nc->err));
}
static MP_DEFINE_CONST_FUN_OBJ_1(netconn_err_obj, netconn_err_);

// stats() -> (errmem, rx_dropped, refs in use) of this connection
static mp_obj_t netconn_stats(mp_obj_t self_in) {
    nc_t *c = ((netconn_obj_t *)MP_OBJ_TO_PTR(self_in))->nc;
    mp_obj_t items[3] = {
        mp_obj_new_int_from_uint(c->errmem),
        mp_obj_new_int_from_uint(c->rx_dropped),
        MP_OBJ_NEW_SMALL_INT((uint16_t)(c->ref_head - c->ref_tail)),
    };
    return mp_obj_new_tuple(3, items);
}
static MP_DEFINE_CONST_FUN_OBJ_1(netconn_stats_obj, netconn_stats);

// ---------------------------------------------------------------- the raw pump

// pump(buf, total, chunk=16384): hand `total` bytes to lwIP, buf again and again, from its callbacks.
// Returns at once; flush() waits for the end, unacked() tells how far it is. A further call with the
// same buf adds to the total.
static mp_obj_t netconn_pump(size_t n_args, const mp_obj_t *args) {
    netconn_obj_t *self = MP_OBJ_TO_PTR(args[0]);
    nc_t *c = self->nc;
    mp_buffer_info_t buf;
    mp_get_buffer_raise(args[1], &buf, MP_BUFFER_READ);
    mp_int_t total = mp_obj_get_int(args[2]);
    size_t chunk = n_args > 3 ? (size_t)mp_obj_get_int(args[3]) : 16384;
    nc_check(c);
    if (c->kind != NC_TCP || c->state != NC_CONNECTED) {
        mp_raise_OSError(MP_ENOTCONN);
    }
    if (buf.len == 0 || total < 0 || chunk == 0 || (c->pump_credit > 0 && c->pump_owner != args[1])) {
        mp_raise_ValueError(NULL);
    }
    MICROPY_PY_LWIP_ENTER
    c->pump_owner = args[1];
    c->pump_buf = buf.buf;
    c->pump_chunk = (uint32_t)MIN(chunk, buf.len);
    c->pump_credit += (uint32_t)total;
    nc_pump_fill(c);
    MICROPY_PY_LWIP_EXIT
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(netconn_pump_obj, 3, 4, netconn_pump);

// sink(most=-1) -> bytes that lwIP's callback received and threw away since the last call; 0 at the end of
// the stream; None when none and it must not wait. From the first call on nothing reaches readinto().
static mp_obj_t netconn_sink(size_t n_args, const mp_obj_t *args) {
    netconn_obj_t *self = MP_OBJ_TO_PTR(args[0]);
    nc_t *c = self->nc;
    uint32_t most = n_args > 1 ? (uint32_t)mp_obj_get_int(args[1]) : 0x3fffffff;
    if (c->kind != NC_TCP) {
        mp_raise_OSError(MP_EOPNOTSUPP);
    }
    if (!c->sinking) {
        c->sinking = true;
        // What came before is thrown away, and counted, too.
        netbuf_obj_t nb = { { &netbuf_type }, NULL, NULL, { 0 }, 0 };
        int errcode;
        while (c->rx_cur != NULL || c->rx_head != NULL) {
            c->sunk += (uint32_t)nc_tcp_recv(c, &nb, 0, &errcode);
        }
        MICROPY_PY_LWIP_ENTER
        netbuf_release(&nb);
        MICROPY_PY_LWIP_EXIT
    }
    nc_wait_t wait = nc_wait_begin(self->timeout_ms);
    while (c->sunk == 0) {
        if (c->eof) {
            return MP_OBJ_NEW_SMALL_INT(0);
        }
        nc_check(c);
        int fail = nc_wait(&wait);
        if (fail != 0) {
            return answer(MP_STREAM_ERROR, fail);
        }
    }
    MICROPY_PY_LWIP_ENTER
    uint32_t n = MIN(c->sunk, most);
    c->sunk -= n;
    MICROPY_PY_LWIP_EXIT
    return mp_obj_new_int_from_uint(n);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(netconn_sink_obj, 1, 2, netconn_sink);

// pump_write(buf) -> len(buf), or None while enough is queued: write() for the pump. The callbacks hand
// on what was queued, so Python is not needed for each acknowledgment. What is queued is sent in any
// case; buf must stay the same until flush(). Short writes are copied, in order.
static mp_obj_t netconn_pump_write(mp_obj_t self_in, mp_obj_t buf_in) {
    netconn_obj_t *self = MP_OBJ_TO_PTR(self_in);
    nc_t *c = self->nc;
    mp_buffer_info_t buf;
    mp_get_buffer_raise(buf_in, &buf, MP_BUFFER_READ);
    nc_check(c);
    nc_wait_t wait = nc_wait_begin(self->timeout_ms);
    while (c->pump_credit > (c->pump_owner == buf_in ? 2 * buf.len : 0)) {
        int fail = nc_wait(&wait);
        if (fail != 0) {
            return answer(MP_STREAM_ERROR, fail);
        }
        nc_check(c);
    }
    if (buf.len < NETCONN_COPY_BELOW) {
        int errcode = 0;
        mp_uint_t n = write_tcp(self, buf_in, buf.buf, buf.len, NC_COPY, &errcode);
        return answer(n, errcode);
    }
    mp_obj_t args[3] = { self_in, buf_in, mp_obj_new_int_from_uint(buf.len) };
    netconn_pump(3, args);
    return args[2];
}
static MP_DEFINE_CONST_FUN_OBJ_2(netconn_pump_write_obj, netconn_pump_write);

// sink_into(buf) -> bytes: readinto() for the pump. From the first bytearray of COPY_BELOW bytes on,
// received data is counted and thrown away by the callback and buf is left as it is. Shorter buffers
// and views are really read until then: that is how protocols read their own messages.
static mp_obj_t netconn_sink_into(mp_obj_t self_in, mp_obj_t buf_in) {
    mp_buffer_info_t buf;
    mp_get_buffer_raise(buf_in, &buf, MP_BUFFER_WRITE);
    bool bulk = buf.len >= NETCONN_COPY_BELOW && mp_obj_is_type(buf_in, &mp_type_bytearray);
    if (!bulk && !((netconn_obj_t *)MP_OBJ_TO_PTR(self_in))->nc->sinking) {
        return netconn_readinto(self_in, buf_in);
    }
    mp_obj_t args[2] = { self_in, MP_OBJ_NEW_SMALL_INT(buf.len) };
    return netconn_sink(2, args);
}
static MP_DEFINE_CONST_FUN_OBJ_2(netconn_sink_into_obj, netconn_sink_into);

// ---------------------------------------------------------------- stream protocol

static mp_uint_t stream_read(mp_obj_t self_in, void *buf, mp_uint_t size, int *errcode) {
    return read_any(MP_OBJ_TO_PTR(self_in), buf, size, errcode);
}

static mp_uint_t stream_write(mp_obj_t self_in, const void *buf, mp_uint_t size, int *errcode) {
    return write_tcp(MP_OBJ_TO_PTR(self_in), MP_OBJ_NULL, buf, size, NC_COPY, errcode);
}

static mp_uint_t poll_flags(nc_t *c, uintptr_t flags) {
    mp_uint_t ret = 0;
    if (c->kind == NC_UDP) {
        if (c->pcb.udp == NULL) {
            return MP_STREAM_POLL_NVAL;
        }
        if (c->dgram_count > 0) {
            ret |= MP_STREAM_POLL_RD;
        }
        return flags & (ret | MP_STREAM_POLL_WR);
    }
    if (c->state == NC_LISTENING) {
        return pending_any(c) ? flags & MP_STREAM_POLL_RD : 0;
    }
    if (c->rx_cur != NULL || c->rx_head != NULL || c->sunk > 0 || c->eof) {
        ret |= MP_STREAM_POLL_RD;
    }
    if (nc_tcp_writable(c) && c->pump_credit <= 2 * c->pump_chunk) {
        ret |= MP_STREAM_POLL_WR;
    }
    ret &= flags;
    if (c->err != ERR_OK) {
        ret |= MP_STREAM_POLL_ERR | MP_STREAM_POLL_HUP | (flags & (MP_STREAM_POLL_RD | MP_STREAM_POLL_WR));
    } else if (c->pcb.tcp == NULL) {
        ret |= MP_STREAM_POLL_NVAL;
    } else if (c->state == NC_NEW) {
        ret |= MP_STREAM_POLL_HUP;
    }
    return ret;
}

static mp_uint_t stream_ioctl(mp_obj_t self_in, mp_uint_t request, uintptr_t arg, int *errcode) {
    nc_t *c = ((netconn_obj_t *)MP_OBJ_TO_PTR(self_in))->nc;
    if (request == MP_STREAM_POLL) {
        MICROPY_PY_LWIP_ENTER
        mp_uint_t ret = poll_flags(c, arg);
        MICROPY_PY_LWIP_EXIT
        return ret;
    }
    if (request == MP_STREAM_CLOSE) {
        close_block(c, false);
        return 0;
    }
    *errcode = MP_EINVAL;
    return MP_STREAM_ERROR;
}

static const mp_stream_p_t netconn_stream_p = {
    .read = stream_read,
    .write = stream_write,
    .ioctl = stream_ioctl,
};

static const mp_rom_map_elem_t netconn_locals_dict_table[] = {
    { MP_ROM_QSTR(MP_QSTR___del__), MP_ROM_PTR(&netconn_close_obj) },
    { MP_ROM_QSTR(MP_QSTR_bind), MP_ROM_PTR(&netconn_bind_obj) },
    { MP_ROM_QSTR(MP_QSTR_connect), MP_ROM_PTR(&netconn_connect_obj) },
    { MP_ROM_QSTR(MP_QSTR_listen), MP_ROM_PTR(&netconn_listen_obj) },
    { MP_ROM_QSTR(MP_QSTR_accept), MP_ROM_PTR(&netconn_accept_obj) },
    { MP_ROM_QSTR(MP_QSTR_write), MP_ROM_PTR(&netconn_write_obj) },
    { MP_ROM_QSTR(MP_QSTR_flush), MP_ROM_PTR(&netconn_flush_obj) },
    { MP_ROM_QSTR(MP_QSTR_unacked), MP_ROM_PTR(&netconn_unacked_obj) },
    { MP_ROM_QSTR(MP_QSTR_readinto), MP_ROM_PTR(&netconn_readinto_obj) },
    { MP_ROM_QSTR(MP_QSTR_read), MP_ROM_PTR(&mp_stream_read1_obj) },
    { MP_ROM_QSTR(MP_QSTR_readline), MP_ROM_PTR(&mp_stream_unbuffered_readline_obj) },
    { MP_ROM_QSTR(MP_QSTR_recv), MP_ROM_PTR(&netconn_recv_obj) },
    { MP_ROM_QSTR(MP_QSTR_send), MP_ROM_PTR(&netconn_send_obj) },
    { MP_ROM_QSTR(MP_QSTR_sendto), MP_ROM_PTR(&netconn_sendto_obj) },
    { MP_ROM_QSTR(MP_QSTR_settimeout), MP_ROM_PTR(&netconn_settimeout_obj) },
    { MP_ROM_QSTR(MP_QSTR_setblocking), MP_ROM_PTR(&netconn_setblocking_obj) },
    { MP_ROM_QSTR(MP_QSTR_config), MP_ROM_PTR(&netconn_config_obj) },
    { MP_ROM_QSTR(MP_QSTR_shutdown), MP_ROM_PTR(&netconn_shutdown_obj) },
    { MP_ROM_QSTR(MP_QSTR_close), MP_ROM_PTR(&netconn_close_obj) },
    { MP_ROM_QSTR(MP_QSTR_abort), MP_ROM_PTR(&netconn_abort_obj) },
    { MP_ROM_QSTR(MP_QSTR_local), MP_ROM_PTR(&netconn_local_obj) },
    { MP_ROM_QSTR(MP_QSTR_remote), MP_ROM_PTR(&netconn_remote_obj) },
    { MP_ROM_QSTR(MP_QSTR_err), MP_ROM_PTR(&netconn_err_obj) },
    { MP_ROM_QSTR(MP_QSTR_stats), MP_ROM_PTR(&netconn_stats_obj) },
    { MP_ROM_QSTR(MP_QSTR_pump), MP_ROM_PTR(&netconn_pump_obj) },
    { MP_ROM_QSTR(MP_QSTR_pump_write), MP_ROM_PTR(&netconn_pump_write_obj) },
    { MP_ROM_QSTR(MP_QSTR_sink), MP_ROM_PTR(&netconn_sink_obj) },
    { MP_ROM_QSTR(MP_QSTR_sink_into), MP_ROM_PTR(&netconn_sink_into_obj) },
};
static MP_DEFINE_CONST_DICT(netconn_locals_dict, netconn_locals_dict_table);

MP_DEFINE_CONST_OBJ_TYPE(
    netconn_type,
    MP_QSTR_Netconn,
    MP_TYPE_FLAG_NONE,
    make_new, netconn_make_new,
    print, netconn_print,
    protocol, &netconn_stream_p,
    locals_dict, &netconn_locals_dict
    );

// ---------------------------------------------------------------- module

// blocks() -> control blocks that lwIP still holds (open, or closed with data in flight)
static mp_obj_t netconn_blocks(void) {
    nc_reap();
    mp_int_t n = 0;
    for (nc_t *c = MP_STATE_VM(netconn_list); c != NULL; c = c->next) {
        n++;
    }
    return MP_OBJ_NEW_SMALL_INT(n);
}
static MP_DEFINE_CONST_FUN_OBJ_0(netconn_blocks_obj, netconn_blocks);

static const mp_rom_map_elem_t netconn_globals_table[] = {
    { MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_netconn) },
    { MP_ROM_QSTR(MP_QSTR_Netconn), MP_ROM_PTR(&netconn_type) },
    { MP_ROM_QSTR(MP_QSTR_Netbuf), MP_ROM_PTR(&netbuf_type) },
    { MP_ROM_QSTR(MP_QSTR_blocks), MP_ROM_PTR(&netconn_blocks_obj) },
    { MP_ROM_QSTR(MP_QSTR_NETCONN_TCP), MP_ROM_INT(NC_TCP) },
    { MP_ROM_QSTR(MP_QSTR_NETCONN_UDP), MP_ROM_INT(NC_UDP) },
    { MP_ROM_QSTR(MP_QSTR_NETCONN_NOCOPY), MP_ROM_INT(NC_NOCOPY) },
    { MP_ROM_QSTR(MP_QSTR_NETCONN_COPY), MP_ROM_INT(NC_COPY) },
    { MP_ROM_QSTR(MP_QSTR_NETCONN_MORE), MP_ROM_INT(NC_MORE) },
    { MP_ROM_QSTR(MP_QSTR_COPY_BELOW), MP_ROM_INT(NETCONN_COPY_BELOW) },
};
static MP_DEFINE_CONST_DICT(netconn_globals, netconn_globals_table);

const mp_obj_module_t mp_module_netconn = {
    .base = { &mp_type_module },
    .globals = (mp_obj_dict_t *)&netconn_globals,
};
MP_REGISTER_MODULE(MP_QSTR_netconn, mp_module_netconn);
