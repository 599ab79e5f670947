# ruff: noqa: F821 (the names of a MicroPython manifest)
# What is frozen into the firmware: asyncio, the RAM disk's boot file, the bench's device package.
include("$(MPY_DIR)/extmod/asyncio")
freeze("$(PORT_DIR)/modules")
package("iperf", base_path="$(PORT_DIR)/..", opt=2)
include("$(PORT_DIR)/tools/freeze_extra.py")
