// Start-up, the soft reset loop, and what the core asks of a port.
#include <string.h>

#include "py/compile.h"
#include "py/gc.h"
#include "py/mphal.h"
#include "py/mperrno.h"
#include "py/runtime.h"
#include "py/stackctrl.h"
#include "extmod/modnetwork.h"
#include "extmod/vfs.h"
#include "shared/readline/readline.h"
#include "shared/runtime/gchelper.h"
#include "shared/runtime/pyexec.h"

#include "lwip/netif.h"
#include "net.h"
#include "port.h"

extern uint8_t _heap_start, _heap_end, _stack_bottom, _stack_top;

int main(void) {
    machine_init();
    port_random_init();
    net_init();

    for (;;) {
        mp_stack_set_top(&_stack_top);
        mp_stack_set_limit((size_t)(&_stack_top - &_stack_bottom) - 2048);
        gc_init(&_heap_start, &_heap_end);
        mp_init();
        readline_init0();
        mp_obj_list_append(mp_sys_path, MP_OBJ_NEW_QSTR(MP_QSTR__slash_lib)); // where mip installs
        mod_network_init();
        mp_vfs_mount_romfs_protected();
        pyexec_frozen_module("_boot.py", false);
        int ret = pyexec_file_if_exists("boot.py");
        if (!(ret & PYEXEC_FORCED_EXIT) && pyexec_mode_kind == PYEXEC_MODE_FRIENDLY_REPL) {
            ret = pyexec_file_if_exists("main.py");
        }
        if (!(ret & PYEXEC_FORCED_EXIT)) {
            for (;;) {
                if (pyexec_mode_kind == PYEXEC_MODE_RAW_REPL) {
                    if (pyexec_raw_repl() != 0) {
                        break;
                    }
                } else if (pyexec_friendly_repl() != 0) {
                    break;
                }
            }
        }
        mp_hal_stdout_tx_str("MPY: soft reboot\r\n");
        // Sockets and connections are closed by their finalisers: lwIP outlives the Python heap.
        gc_sweep_all();
        mp_deinit();
    }
}

void gc_collect(void) {
    gc_collect_start();
    gc_helper_collect_regs_and_stack();
    gc_collect_end();
}

void nlr_jump_fail(void *val) {
    (void)val;
    port_fatal("uncaught exception");
}

void port_fatal(const char *what) {
    machine_console_write((const uint8_t *)"\r\nFATAL: ", 9);
    machine_console_write((const uint8_t *)what, strlen(what));
    machine_console_write((const uint8_t *)"\r\n", 2);
    machine_hard_reset();
}

void abort(void) {
    port_fatal("abort");
}

#ifndef NDEBUG
void __assert_func(const char *file, int line, const char *func, const char *expr) {
    (void)file;
    (void)line;
    (void)func;
    port_fatal(expr);
}
#endif
