// The machine module (included by extmod/modmachine.c), with a software RTC.
#include "py/mphal.h"
#include "shared/timeutils/timeutils.h"
#include "mac.h"
#include "net.h"
#include "port.h"

#define MICROPY_PY_MACHINE_EXTRA_GLOBALS \
    { MP_ROM_QSTR(MP_QSTR_RTC), MP_ROM_PTR(&machine_rtc_type) }, \
    { MP_ROM_QSTR(MP_QSTR_PWRON_RESET), MP_ROM_INT(1) }, \
    { MP_ROM_QSTR(MP_QSTR_HARD_RESET), MP_ROM_INT(2) }, \

static void mp_machine_idle(void) {
    mp_event_wait_ms(1);
}

NORETURN static void mp_machine_reset(void) {
    machine_hard_reset();
}

static mp_int_t mp_machine_reset_cause(void) {
    return machine_reset_cause_was_hard() ? 2 : 1;
}

static mp_obj_t mp_machine_unique_id(void) {
    return mp_obj_new_bytes(net_netif.hwaddr, 6);
}

static mp_obj_t mp_machine_get_freq(void) {
    return MP_OBJ_NEW_SMALL_INT(MACHINE_CPU_HZ);
}

static void mp_machine_set_freq(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    (void)args;
    mp_raise_NotImplementedError(MP_ERROR_TEXT("the frequency is fixed"));
}

static void mp_machine_lightsleep(size_t n_args, const mp_obj_t *args) {
    if (n_args > 0) {
        mp_hal_delay_ms(mp_obj_get_int(args[0]));
    } else {
        mp_event_wait_indefinite();
    }
}

NORETURN static void mp_machine_deepsleep(size_t n_args, const mp_obj_t *args) {
    mp_machine_lightsleep(n_args, args);
    machine_hard_reset();
}

typedef struct _machine_rtc_obj_t {
    mp_obj_base_t base;
} machine_rtc_obj_t;

const mp_obj_type_t machine_rtc_type;
static const machine_rtc_obj_t machine_rtc_obj = { { &machine_rtc_type } };

static mp_obj_t machine_rtc_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw, const mp_obj_t *args) {
    (void)type;
    mp_arg_check_num(n_args, n_kw, 0, 0, false);
    return MP_OBJ_FROM_PTR(&machine_rtc_obj);
}

// datetime([(year, month, day, weekday, hours, minutes, seconds, subseconds)])
static mp_obj_t machine_rtc_datetime(size_t n_args, const mp_obj_t *args) {
    if (n_args == 1) {
        uint64_t us = mp_hal_time_ns() / 1000;
        timeutils_struct_time_t tm;
        timeutils_seconds_since_epoch_to_struct_time((mp_uint_t)(us / 1000000), &tm);
        mp_obj_t tuple[8] = {
            mp_obj_new_int(tm.tm_year), mp_obj_new_int(tm.tm_mon), mp_obj_new_int(tm.tm_mday),
            mp_obj_new_int(tm.tm_wday), mp_obj_new_int(tm.tm_hour), mp_obj_new_int(tm.tm_min),
            mp_obj_new_int(tm.tm_sec), mp_obj_new_int((mp_int_t)(us % 1000000)),
        };
        return mp_obj_new_tuple(8, tuple);
    }
    mp_obj_t *items;
    mp_obj_get_array_fixed_n(args[1], 8, &items);
    uint64_t now = timeutils_seconds_since_epoch(
        mp_obj_get_int(items[0]), mp_obj_get_int(items[1]), mp_obj_get_int(items[2]),
        mp_obj_get_int(items[4]), mp_obj_get_int(items[5]), mp_obj_get_int(items[6]));
    port_epoch_us = now * 1000000 + mp_obj_get_int(items[7]) - machine_time_ticks() / MACHINE_TICKS_PER_US;
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(machine_rtc_datetime_obj, 1, 2, machine_rtc_datetime);

static const mp_rom_map_elem_t machine_rtc_locals_dict_table[] = {
    { MP_ROM_QSTR(MP_QSTR_datetime), MP_ROM_PTR(&machine_rtc_datetime_obj) },
};
static MP_DEFINE_CONST_DICT(machine_rtc_locals_dict, machine_rtc_locals_dict_table);

MP_DEFINE_CONST_OBJ_TYPE(
    machine_rtc_type,
    MP_QSTR_RTC,
    MP_TYPE_FLAG_NONE,
    make_new, machine_rtc_make_new,
    locals_dict, &machine_rtc_locals_dict
    );
