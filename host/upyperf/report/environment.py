"""What a bench ran on and with: board, lwIP options, NICs, network, PC, configuration."""

from upyperf.analysis import units
from upyperf.records import Bench


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_flat(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_flat(v) for v in value)
    return str(value)


def _known(*items: tuple[str, object]) -> list[tuple[str, object]]:
    return [(name, _flat(value)) for name, value in items if value not in (None, "", [], {})]


def _board_items(bench: Bench) -> list[tuple[str, object]]:
    board, info = bench.board, bench.info
    items = _known(
        ("board", board.name),
        ("kind", board.kind + (", virtual time" if board.time == "virtual" else "")),
        ("twin of", board.twin_of),
        ("MCU", board.mcu),
        ("serial", " ".join(v for v in (board.port, board.connection) if v)),
        ("link rate", f"{board.link_mbit:g} Mbit/s" if board.link_mbit else None),
    )
    if info is None:
        return [*items, ("MicroPython", "the board did not answer")]
    return items + _known(
        ("MicroPython", info.micropython),
        ("machine", info.machine),
        ("platform", info.platform),
        (".mpy version", info.mpy),
        ("clock", f"{info.freq_hz / 1e6:g} MHz" if info.freq_hz else None),
        ("iperf package", info.iperf),
        ("layers", info.layers),
        ("heap free", units.format_size(info.heap_free) if info.heap_free is not None else None),
        ("heap in use", units.format_size(info.heap_alloc) if info.heap_alloc is not None else None),
        ("RSSI", f"{info.rssi} dBm" if info.rssi is not None else None),
        ("unique id", info.unique_id),
    )


def sections(bench: Bench) -> list[tuple[str, list[tuple[str, object]]]]:
    """What the figures depend on: (title, [(name, value with its unit)]), only what is known."""
    info, net, host = bench.info, bench.network, bench.host
    sections = [("Board", _board_items(bench))]
    if info is not None:
        sections.append(
            ("lwIP options", _known(*sorted((info.lwip or {}).items())) or [("lwIP", "not known")])
        )
        sections += [
            (
                f"NIC {n}" if len(info.nics) > 1 else "NIC",
                _known(*(nic.items() if isinstance(nic, dict) else [("", nic)])),
            )
            for n, nic in enumerate(info.nics)
        ]
    sections.append(
        (
            "Network",
            _known(
                ("mode", net.mode),
                ("interface", net.interface),
                ("PC", net.pc_address),
                ("board", net.board_address),
                ("round trip", units.format_time_us(net.rtt_us) if net.rtt_us else None),
                ("notes", net.notes),
            ),
        )
    )
    tools = [(name, version or "not installed") for name, version in host.tools.items()]
    sections.append(
        (
            "PC",
            _known(("host", host.hostname), ("system", host.platform), ("Python", host.python), *tools),
        )
    )
    sections.append(
        ("Bench", _known(("command", " ".join(bench.command)), ("plan", bench.plan), *bench.config.items()))
    )
    return [(title, items) for title, items in sections if items]
