// MicroPython configuration of the bench port (common to every machine).
#include <stdint.h>
#include <alloca.h>
#include "machine_config.h"

#define MICROPY_CONFIG_ROM_LEVEL            (MICROPY_CONFIG_ROM_LEVEL_EXTRA_FEATURES)

#define MICROPY_MALLOC_USES_ALLOCATED_SIZE  (1)
#define MICROPY_MEM_STATS                   (0)
#define MICROPY_PERSISTENT_CODE_LOAD        (1)
#define MICROPY_READER_VFS                  (1)
#define MICROPY_ENABLE_GC                   (1)
#define MICROPY_ENABLE_FINALISER            (1)
#define MICROPY_STACK_CHECK                 (1)
#define MICROPY_KBD_EXCEPTION               (1)
#define MICROPY_HELPER_REPL                 (1)
#define MICROPY_REPL_INFO                   (0)
#define MICROPY_ENABLE_SOURCE_LINE          (1)
#define MICROPY_ENABLE_EMERGENCY_EXCEPTION_BUF (1)
#define MICROPY_EMERGENCY_EXCEPTION_BUF_SIZE (128)
#define MICROPY_LONGINT_IMPL                (MICROPY_LONGINT_IMPL_MPZ)
#define MICROPY_FLOAT_IMPL                  (MICROPY_FLOAT_IMPL_FLOAT)
#define MICROPY_ENABLE_SCHEDULER            (1)
#define MICROPY_SCHEDULER_STATIC_NODES      (1)
#define MICROPY_SCHEDULER_DEPTH             (8)
#define MICROPY_WARNINGS                    (1)
#define MICROPY_USE_INTERNAL_ERRNO          (1)

#define MICROPY_PY_SYS_PLATFORM             MACHINE_PLATFORM
#define MICROPY_PY_SYS_STDIO_BUFFER         (1)
#define MICROPY_PY_OS_URANDOM               (1)
#define MICROPY_PY_OS_UNAME                 (1)
#define MICROPY_PY_OS_INCLUDEFILE           "modos_port.h"
#define MICROPY_PY_RANDOM_SEED_INIT_FUNC    (port_random_u32())
#define MICROPY_PY_TIME                     (1)
#define MICROPY_PY_TIME_GMTIME_LOCALTIME_MKTIME (1)
#define MICROPY_PY_TIME_TIME_TIME_NS        (1)
#define MICROPY_PY_TIME_INCLUDEFILE         "modtime_port.h"
#define MICROPY_PY_SELECT                   (1)
#define MICROPY_PY_ASYNCIO                  (1)
#define MICROPY_PY_MACHINE                  (1)
#define MICROPY_PY_MACHINE_INCLUDEFILE      "modmachine_port.h"
#define MICROPY_PY_MACHINE_RESET            (1)
#define MICROPY_PY_MACHINE_BARE_METAL_FUNCS (1)
#define MICROPY_PY_MACHINE_DISABLE_IRQ_ENABLE_IRQ (1)
#define MICROPY_PY_NETWORK                  (1)
#define MICROPY_PY_NETWORK_HOSTNAME_DEFAULT "mpy-" MACHINE_PLATFORM
#define MICROPY_PY_SOCKET                   (1)
#define MICROPY_PY_LWIP_SOCK_RAW            (1)
#define MICROPY_PY_WEBSOCKET                (0)
#define MICROPY_PY_WEBREPL                  (0)
#define MICROPY_PY_FRAMEBUF                 (0)
#define MICROPY_PY_CRYPTOLIB                (0)
#define MICROPY_VFS                         (1)
#define MICROPY_VFS_ROM                     (1)
#define MICROPY_VFS_ROM_IOCTL               (1)

extern uint32_t port_random_u32(void);

#define MICROPY_PORT_NETWORK_INTERFACES \
    { MP_ROM_QSTR(MP_QSTR_LAN), MP_ROM_PTR(&port_lan_type) },
extern const struct _mp_obj_type_t port_lan_type;

#define MP_SSIZE_MAX (0x7fffffff)
#define UINT_FMT "%lu"
#define INT_FMT "%ld"
typedef int32_t mp_int_t;
typedef uint32_t mp_uint_t;
typedef long mp_off_t;

#define MP_STATE_PORT MP_STATE_VM
#define MICROPY_MAKE_POINTER_CALLABLE(p) MACHINE_CALLABLE(p)
