// netconn: UDP.
#include <string.h>

#include "netconn.h"

// A payload that is sent by reference. Drivers that queue frames hold the pbuf longer than the call,
// so it lives in static memory and its object in a root pointer until the pbuf is freed.
#define UDP_REFS (16)

typedef struct _udp_ref_t {
    struct pbuf_custom custom; // first: lwIP hands its address to free_ref()
    volatile bool used;
} udp_ref_t;

static udp_ref_t udp_refs[UDP_REFS];
static uint8_t udp_ref_next;
MP_REGISTER_ROOT_POINTER(mp_obj_t netconn_udp_owner[16]);

static void free_ref(struct pbuf *p) {
    udp_ref_t *ref = (udp_ref_t *)p;
    MP_STATE_VM(netconn_udp_owner)[ref - udp_refs] = MP_OBJ_NULL;
    ref->used = false;
}

void nc_udp_recv_cb(void *arg, struct udp_pcb *pcb, struct pbuf *p, const ip_addr_t *addr, u16_t port) {
    (void)pcb;
    nc_t *c = arg;
    if (c->dgram_count == c->depth) {
        c->rx_dropped++;
        pbuf_free(p);
        return;
    }
    nc_dgram_t *d = &c->dgrams[c->dgram_put];
    d->p = p;
    ip_addr_copy(d->addr, *addr);
    d->port = port;
    c->dgram_put = (uint8_t)(c->dgram_put + 1 == c->depth ? 0 : c->dgram_put + 1);
    c->dgram_count++;
}

// Send a datagram: its first `header` bytes are copied, the rest is referred to. Returns 0 or an errno.
int nc_udp_send(nc_t *c, mp_obj_t owner, const uint8_t *buf, size_t len, size_t header,
    const ip_addr_t *addr, uint16_t port) {
    if (len > 0xffff - 8) {
        return MP_EINVAL;
    }
    if (len - header < NETCONN_COPY_BELOW) {
        header = len;
    }
    int ret = 0;
    MICROPY_PY_LWIP_ENTER
    struct pbuf *p = NULL;
    if (c->pcb.udp == NULL) {
        ret = MP_EBADF;
    } else {
        p = pbuf_alloc(PBUF_TRANSPORT, (u16_t)header, PBUF_RAM);
        if (p == NULL) {
            ret = MP_ENOMEM;
        }
    }
    if (p != NULL && header < len) {
        udp_ref_t *ref = &udp_refs[udp_ref_next];
        if (ref->used) {
            ret = MP_ENOBUFS; // the driver still holds all of them
        } else {
            udp_ref_next = (uint8_t)((udp_ref_next + 1) % UDP_REFS);
            ref->used = true;
            ref->custom.custom_free_function = free_ref;
            MP_STATE_VM(netconn_udp_owner)[ref - udp_refs] = owner;
            struct pbuf *payload = pbuf_alloced_custom(PBUF_RAW, (u16_t)(len - header), PBUF_REF,
                &ref->custom, (void *)(buf + header), (u16_t)(len - header));
            pbuf_cat(p, payload);
        }
    }
    if (ret == 0) {
        memcpy(p->payload, buf, header);
        err_t err = addr != NULL ? udp_sendto(c->pcb.udp, p, addr, port) : udp_send(c->pcb.udp, p);
        ret = nc_errno(err);
        if (err == ERR_MEM) {
            c->errmem++;
        }
    }
    if (p != NULL) {
        pbuf_free(p);
    }
    MICROPY_PY_LWIP_EXIT
    return ret;
}

// The next datagram into `nb`. Its length, or MP_STREAM_ERROR and *errcode.
mp_uint_t nc_udp_recv(nc_t *c, netbuf_obj_t *nb, mp_int_t timeout_ms, int *errcode) {
    nc_wait_t wait = nc_wait_begin(timeout_ms);
    if (nb->p != NULL && c->dgram_count == 0) {
        MICROPY_PY_LWIP_ENTER
        netbuf_release(nb);
        MICROPY_PY_LWIP_EXIT
    }
    while (c->dgram_count == 0) {
        if (c->pcb.udp == NULL) {
            *errcode = MP_EBADF;
            return MP_STREAM_ERROR;
        }
        int err = nc_wait(&wait);
        if (err != 0) {
            *errcode = err;
            return MP_STREAM_ERROR;
        }
    }
    MICROPY_PY_LWIP_ENTER
    netbuf_release(nb);
    nc_dgram_t *d = &c->dgrams[c->dgram_get];
    nb->p = nb->cur = d->p;
    ip_addr_copy(nb->addr, d->addr);
    nb->port = d->port;
    d->p = NULL;
    c->dgram_get = (uint8_t)(c->dgram_get + 1 == c->depth ? 0 : c->dgram_get + 1);
    c->dgram_count--;
    mp_uint_t len = nb->p->tot_len;
    MICROPY_PY_LWIP_EXIT
    return len;
}

// Lock held.
void nc_udp_close(nc_t *c) {
    if (c->pcb.udp != NULL) {
        udp_recv(c->pcb.udp, NULL, NULL);
        udp_remove(c->pcb.udp);
        c->pcb.udp = NULL;
    }
    c->state = NC_CLOSED;
    while (c->dgram_count > 0) {
        pbuf_free(c->dgrams[c->dgram_get].p);
        c->dgram_get = (uint8_t)(c->dgram_get + 1 == c->depth ? 0 : c->dgram_get + 1);
        c->dgram_count--;
    }
}
