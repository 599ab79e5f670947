"""Instructions per payload byte of each socket layer, counted by an emulated board.

Under QEMU's `-icount shift=0` the board's clock advances one nanosecond with each instruction, so the time
that the board was busy is the number of instructions it executed: the same in every run, whatever else
this PC does. Instructions are not cycles: a copy or a device access costs more on silicon.
"""
