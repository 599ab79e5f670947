include("$(MPY_DIR)/extmod/asyncio")
freeze("$(PORT_DIR)/modules")
package("iperf", base_path="$(PORT_DIR)/..", opt=2)
