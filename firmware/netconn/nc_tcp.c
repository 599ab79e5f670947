// netconn: TCP. Callbacks of lwIP first, then what Python calls.
#include <string.h>

#include "netconn.h"

#include "lwip/priv/tcp_priv.h"

// ---------------------------------------------------------------- references to the Python heap

// lwIP context or lock held: everything up to tx_acked is lwIP's no more.
static void release_refs(nc_t *c) {
    while (c->ref_tail != c->ref_head) {
        nc_ref_t *ref = &c->refs[c->ref_tail % NETCONN_REFS];
        if ((int32_t)(c->tx_acked - ref->end) < 0) {
            break;
        }
        ref->owner = MP_OBJ_NULL;
        ref->base = NULL;
        c->ref_tail++;
    }
}

static void release_all(nc_t *c) {
    c->tx_acked = c->tx_queued;
    release_refs(c);
    c->pump_credit = 0;
    c->pump_owner = MP_OBJ_NULL;
    c->pump_buf = NULL;
}

// A free slot for this object, or NULL. A further write of the same object shares its slot.
static nc_ref_t *find_ref(nc_t *c, mp_obj_t owner, const void *base) {
    if (c->ref_head != c->ref_tail) {
        nc_ref_t *last = &c->refs[(uint16_t)(c->ref_head - 1) % NETCONN_REFS];
        if (last->owner == owner && last->base == base) {
            return last;
        }
    }
    if ((uint16_t)(c->ref_head - c->ref_tail) < NETCONN_REFS) {
        return &c->refs[c->ref_head % NETCONN_REFS];
    }
    return NULL;
}

// ---------------------------------------------------------------- lwIP's callbacks

// Cut the tie between lwIP and the control block; the pcb goes its own way.
static void detach(nc_t *c, struct tcp_pcb *pcb) {
    tcp_arg(pcb, NULL);
    tcp_recv(pcb, NULL);
    tcp_sent(pcb, NULL);
    tcp_err(pcb, NULL);
    c->pcb.tcp = NULL;
    c->state = NC_CLOSED;
}

static err_t on_poll_orphan(void *arg, struct tcp_pcb *pcb) {
    nc_t *c = arg;
    if (c != NULL) {
        detach(c, pcb);
        release_all(c);
    }
    tcp_poll(pcb, NULL, 0);
    tcp_abort(pcb);
    return ERR_ABRT;
}

static err_t on_sent(void *arg, struct tcp_pcb *pcb, u16_t len) {
    nc_t *c = arg;
    c->tx_acked += len;
    c->wait_sent = false;
    release_refs(c);
    if (c->pump_credit > 0) {
        nc_pump_fill(c);
    }
    if (c->lingering && c->pump_credit == 0) {
        bool fin = c->draining;
        c->draining = false;
        if (c->tx_acked == c->tx_queued) {
            c->pump_owner = MP_OBJ_NULL;
            detach(c, pcb);
        }
        if (fin && tcp_close(pcb) != ERR_OK) {
            tcp_abort(pcb);
            return ERR_ABRT;
        }
    }
    return ERR_OK;
}

static err_t on_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err) {
    (void)err;
    nc_t *c = arg;
    if (p == NULL) {
        c->eof = true;
        return ERR_OK;
    }
    if (c->lingering || c->sinking) {
        tcp_recved(pcb, p->tot_len);
        c->sunk += p->tot_len;
        pbuf_free(p);
        return ERR_OK;
    }
    if (c->rx_head == NULL) {
        c->rx_head = p;
    } else {
        c->rx_tail->next = p;
    }
    while (p->next != NULL) {
        p = p->next;
    }
    c->rx_tail = p;
    return ERR_OK;
}

static void on_err(void *arg, err_t err) {
    nc_t *c = arg;
    c->pcb.tcp = NULL; // lwIP has freed it, or will at once
    c->err = err;
    c->state = NC_CLOSED;
    release_all(c);
}

// Twice a second: memory may have come free by other connections.
static err_t on_poll(void *arg, struct tcp_pcb *pcb) {
    (void)pcb;
    nc_t *c = arg;
    c->wait_sent = false;
    if (c->pump_credit > 0) {
        nc_pump_fill(c);
    }
    return ERR_OK;
}

static void on_pending_err(void *arg, err_t err) {
    (void)err;
    nc_pending_t *slot = arg;
    slot->pcb = NULL;
    if (slot->rx != NULL) {
        pbuf_free(slot->rx);
        slot->rx = NULL;
    }
}

static err_t on_pending_recv(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err) {
    (void)pcb;
    (void)err;
    nc_pending_t *slot = arg;
    if (p == NULL) {
        slot->eof = true;
    } else if (slot->rx == NULL) {
        slot->rx = p;
    } else {
        pbuf_cat(slot->rx, p);
    }
    return ERR_OK;
}

err_t nc_tcp_accept_cb(void *arg, struct tcp_pcb *pcb, err_t err) {
    nc_t *c = arg;
    if (err != ERR_OK || pcb == NULL) {
        return ERR_VAL;
    }
    nc_pending_t *slot = NULL;
    for (size_t i = 0; i < c->backlog && slot == NULL; i++) {
        nc_pending_t *s = &c->pending[c->pending_put];
        c->pending_put = (uint8_t)((c->pending_put + 1) % c->backlog);
        if (s->pcb == NULL) {
            slot = s;
        }
    }
    if (slot == NULL) {
        return ERR_MEM; // the queue is full: lwIP aborts the connection
    }
    slot->pcb = pcb;
    slot->eof = false;
    tcp_arg(pcb, slot);
    tcp_err(pcb, on_pending_err);
    tcp_recv(pcb, on_pending_recv);
    tcp_backlog_delayed(pcb);
    return ERR_OK;
}

// Lock held. Make the control block the pcb's owner.
void nc_tcp_attach(nc_t *c, struct tcp_pcb *pcb) {
    c->pcb.tcp = pcb;
    tcp_arg(pcb, c);
    tcp_recv(pcb, on_recv);
    tcp_sent(pcb, on_sent);
    tcp_err(pcb, on_err);
    tcp_poll(pcb, on_poll, 1);
}

// ---------------------------------------------------------------- sending

size_t nc_tcp_put(nc_t *c, mp_obj_t owner, const void *base, const uint8_t *buf, size_t len, unsigned flags, err_t *err) {
    struct tcp_pcb *pcb = c->pcb.tcp;
    size_t n = MIN(len, tcp_sndbuf(pcb));
    nc_ref_t *ref = NULL;
    if (!(flags & NC_COPY) && n >= NETCONN_COPY_BELOW) {
        ref = find_ref(c, owner, base);
    }
    if (ref == NULL) {
        n = MIN(n, 4u * tcp_mss(pcb)); // a copy under the lock: keep it short
    }
    for (;;) {
        u8_t api = ref == NULL ? TCP_WRITE_FLAG_COPY : 0;
        if (n < len || (flags & NC_MORE)) {
            api |= TCP_WRITE_FLAG_MORE;
        }
        *err = tcp_write(pcb, buf, (u16_t)n, api);
        if (*err != ERR_MEM || n <= tcp_mss(pcb)) {
            break;
        }
        n /= 2; // the queue may have room for a part
    }
    if (*err != ERR_OK) {
        return 0;
    }
    c->tx_queued += (uint32_t)n;
    if (ref != NULL) {
        if (ref == &c->refs[c->ref_head % NETCONN_REFS]) {
            c->ref_head++;
        }
        ref->owner = owner;
        ref->base = base;
        ref->end = c->tx_queued;
    }
    return n;
}

// lwIP context or lock held.
bool nc_tcp_writable(nc_t *c) {
    if (c->state != NC_CONNECTED || c->wait_sent || c->pcb.tcp == NULL) {
        return false;
    }
    return tcp_sndbuf(c->pcb.tcp) >= tcp_mss(c->pcb.tcp);
}

mp_uint_t nc_tcp_write(nc_t *c, mp_obj_t owner, const void *base, const uint8_t *buf, size_t len,
    unsigned flags, mp_int_t timeout_ms, int *errcode) {
    nc_wait_t wait = nc_wait_begin(timeout_ms);
    size_t done = 0;
    while (done < len) {
        size_t left = len - done;
        size_t n = 0;
        int fail = 0;
        MICROPY_PY_LWIP_ENTER
        struct tcp_pcb *pcb = c->pcb.tcp;
        if (pcb == NULL || c->tx_shut) {
            fail = c->err != ERR_OK ? nc_errno(c->err) : MP_ENOTCONN;
        } else if (c->state == NC_NEW || c->state == NC_LISTENING) {
            fail = MP_ENOTCONN;
        } else if (c->state == NC_CONNECTED && !c->wait_sent && tcp_sndbuf(pcb) >= MIN(left, tcp_mss(pcb))) {
            err_t err;
            n = nc_tcp_put(c, owner, base, buf + done, left, flags, &err);
            if (err == ERR_MEM) {
                c->errmem++;
                c->wait_sent = true; // until on_sent() or on_poll()
            } else if (err != ERR_OK) {
                fail = nc_errno(err);
            }
            tcp_output(pcb);
        }
        MICROPY_PY_LWIP_EXIT
        done += n;
        if (n == 0) {
            if (fail == 0) {
                fail = nc_wait(&wait);
            }
            if (fail != 0) {
                if (done > 0) {
                    break;
                }
                *errcode = fail;
                return MP_STREAM_ERROR;
            }
        }
    }
    return done;
}

// Lock held or lwIP context: hand as much of the credit to lwIP as it takes, in large pieces: one
// call of tcp_write() for each acknowledgment costs more than the Python loop it replaces.
void nc_pump_fill(nc_t *c) {
    struct tcp_pcb *pcb = c->pcb.tcp;
    if (pcb == NULL || c->wait_sent) {
        return;
    }
    bool put = false;
    while (c->pump_credit > 0) {
        size_t n = MIN(c->pump_credit, c->pump_chunk);
        if (tcp_sndbuf(pcb) < MIN(n, (size_t)TCP_SND_BUF / 2)) {
            break;
        }
        err_t err;
        n = nc_tcp_put(c, c->pump_owner, c->pump_buf, c->pump_buf, n, NC_NOCOPY, &err);
        if (n == 0) {
            if (err == ERR_MEM) {
                c->errmem++;
                c->wait_sent = true;
            }
            break;
        }
        c->pump_credit -= (uint32_t)n;
        put = true;
    }
    if (put) {
        tcp_output(pcb);
    }
}

// ---------------------------------------------------------------- receiving

// Lock held. The next pbuf of the queue, alone; NULL when there is none.
static struct pbuf *take(nc_t *c) {
    struct pbuf *p = c->rx_head;
    if (p != NULL) {
        c->rx_head = p->next;
        p->next = NULL;
        p->tot_len = p->len;
    }
    return p;
}

// Wait until something can be read. 0: something is there, or end of stream.
static int wait_readable(nc_t *c, mp_int_t timeout_ms) {
    if (c->rx_cur != NULL || c->rx_head != NULL || c->eof) {
        return 0;
    }
    nc_wait_t wait = nc_wait_begin(timeout_ms);
    while (c->rx_head == NULL && !c->eof) {
        if (c->pcb.tcp == NULL || c->state == NC_NEW) {
            return c->err != ERR_OK ? nc_errno(c->err) : MP_ENOTCONN;
        }
        int err = nc_wait(&wait);
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

mp_uint_t nc_tcp_read(nc_t *c, uint8_t *buf, size_t len, mp_int_t timeout_ms, int *errcode) {
    if (len == 0) {
        return 0;
    }
    int err = wait_readable(c, timeout_ms);
    if (err != 0) {
        *errcode = err;
        return MP_STREAM_ERROR;
    }
    // The copy runs without the lock: rx_cur belongs to the thread.
    size_t done = 0;
    struct pbuf *used = NULL;
    while (done < len) {
        if (c->rx_cur == NULL || used != NULL) {
            MICROPY_PY_LWIP_ENTER
            if (used != NULL) {
                pbuf_free(used);
                used = NULL;
            }
            c->rx_cur = take(c);
            MICROPY_PY_LWIP_EXIT
            c->rx_off = 0;
            if (c->rx_cur == NULL) {
                break;
            }
        }
        struct pbuf *p = c->rx_cur;
        size_t n = MIN(len - done, (size_t)(p->len - c->rx_off));
        memcpy(buf + done, (uint8_t *)p->payload + c->rx_off, n);
        done += n;
        c->rx_off += (uint16_t)n;
        if (c->rx_off == p->len) {
            used = p;
            c->rx_cur = NULL;
        }
    }
    MICROPY_PY_LWIP_ENTER
    if (used != NULL) {
        pbuf_free(used);
    }
    for (size_t n = done; n > 0 && c->pcb.tcp != NULL;) {
        u16_t part = (u16_t)MIN(n, 0xffffu);
        tcp_recved(c->pcb.tcp, part);
        n -= part;
    }
    MICROPY_PY_LWIP_EXIT
    return done;
}

mp_uint_t nc_tcp_recv(nc_t *c, netbuf_obj_t *nb, mp_int_t timeout_ms, int *errcode) {
    if (nb->p != NULL && c->rx_cur == NULL && c->rx_head == NULL && !c->eof) {
        // Give the old memory back before waiting: it may be the last of the pool.
        MICROPY_PY_LWIP_ENTER
        netbuf_release(nb);
        MICROPY_PY_LWIP_EXIT
    }
    int err = wait_readable(c, timeout_ms);
    if (err != 0) {
        *errcode = err;
        return MP_STREAM_ERROR;
    }
    mp_uint_t len = 0;
    MICROPY_PY_LWIP_ENTER
    netbuf_release(nb);
    // Everything that is there: the part that readinto() began, then the queue.
    struct pbuf *p = c->rx_cur;
    if (p != NULL) {
        pbuf_remove_header(p, c->rx_off);
        p->next = c->rx_head;
        c->rx_cur = NULL;
        c->rx_off = 0;
    } else {
        p = c->rx_head;
    }
    c->rx_head = NULL;
    for (struct pbuf *q = p; q != NULL; q = q->next) {
        len += q->len;
    }
    uint32_t rest = (uint32_t)len;
    for (struct pbuf *q = p; q != NULL; q = q->next) {
        q->tot_len = (u16_t)rest; // a queue never exceeds the window, which is 16 bits
        rest -= q->len;
    }
    if (len > 0 && c->pcb.tcp != NULL) {
        tcp_recved(c->pcb.tcp, (u16_t)len);
    }
    nb->p = nb->cur = p;
    MICROPY_PY_LWIP_EXIT
    return len;
}

// ---------------------------------------------------------------- closing

// Lock held.
static void free_rx(nc_t *c) {
    if (c->rx_cur != NULL) {
        pbuf_free(c->rx_cur);
        c->rx_cur = NULL;
    }
    struct pbuf *p;
    while ((p = take(c)) != NULL) {
        pbuf_free(p);
    }
}

static void close_listener(nc_t *c) {
    for (size_t i = 0; i < c->backlog; i++) {
        struct tcp_pcb *pcb = c->pending[i].pcb;
        if (pcb != NULL) {
            tcp_abort(pcb); // on_pending_err() empties the slot
        }
    }
    tcp_arg(c->pcb.tcp, NULL);
    tcp_accept(c->pcb.tcp, NULL);
    tcp_close(c->pcb.tcp);
    c->pcb.tcp = NULL;
    c->state = NC_CLOSED;
}

// Lock held. Data in flight keeps the control block and the buffers alive until it is acknowledged,
// or until lwIP or the linger time ends the connection.
void nc_tcp_close(nc_t *c, bool abort) {
    struct tcp_pcb *pcb = c->pcb.tcp;
    free_rx(c);
    if (pcb == NULL || c->lingering) {
        if (pcb != NULL && abort) {
            tcp_abort(pcb);
        }
        c->state = NC_CLOSED;
        return;
    }
    if (c->state == NC_LISTENING) {
        close_listener(c);
        return;
    }
    c->state = NC_CLOSED;
    // Received and never read: lwIP would reset the connection and free the pcb without a callback.
    if (abort || pcb->refused_data != NULL || (pcb->state >= ESTABLISHED && pcb->rcv_wnd != TCP_WND_MAX(pcb))) {
        tcp_abort(pcb); // calls on_err()
        return;
    }
    c->lingering = true;
    tcp_recv(pcb, on_recv);
    // Before tcp_close(), which may free the pcb.
    tcp_poll(pcb, on_poll_orphan, NETCONN_LINGER);
    if (c->pump_credit > 0) {
        c->draining = true; // on_sent() closes when the pump is empty
        return;
    }
    if (c->tx_acked == c->tx_queued) {
        detach(c, pcb);
    }
    err_t err = tcp_close(pcb);
    if (err != ERR_OK) {
        tcp_abort(pcb);
    }
}
