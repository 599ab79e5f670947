"""results.csv (one line per run and direction) and intervals.csv (one line per stream and interval)."""

import csv
import io
from collections.abc import Iterable

from upyperf.analysis import figures, limits
from upyperf.records import Bench, Interval
from upyperf.report.clean import one_line

RESULT_FIELDS = (
    "bench", "board", "board_kind", "board_time", "run", "test", "iperf_version", "proto", "mode",
    "direction", "role", "layer", "repeat", "status", "error_kind", "error_text", "started",
    "board_bits_per_second", "peer_bits_per_second", "delivered_bits_per_second", "difference_percent",
    "flagged", "exempt",
    "board_bytes", "board_seconds", "peer_bytes", "peer_seconds", "jitter_ms", "packets", "lost_packets",
    "lost_percent", "out_of_order", "retries", "enomem", "stall_ms", "bound_bits_per_second", "bound_of",
    "above_bound", "peer_program", "length_bytes", "window_bytes", "parallel", "target_bits_per_second",
)  # fmt: skip
INTERVAL_FIELDS = (
    "bench", "board", "run", "test", "end", "stream", "board_sends", "start_s", "end_s", "bytes",
    "bits_per_second", "packets", "lost_packets", "out_of_order", "jitter_ms", "retries", "enomem", "omitted",
)  # fmt: skip


def _cell(value: object) -> object:
    """A value as it may stand in a cell: no control characters, and nothing that a spreadsheet runs."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    text = one_line(value)
    return "'" + text if text[:1] in ("=", "+", "-", "@") else text


def _table(fields: tuple[str, ...], rows: Iterable[dict[str, object]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return buffer.getvalue()


def _scaled(value: float | None, divisor: float) -> float | None:
    return None if value is None else value / divisor


def results(bench: Bench) -> str:
    """Every run and direction as CSV: UTF-8, a header line, an empty cell where a figure is not known."""
    table: list[dict[str, object]] = []
    for row in figures.rows(bench):
        run, board = row.run, row.direction.board
        peer = row.direction.peer or row.direction.reported
        difference = row.direction.difference
        table.append(
            {
                "bench": bench.id,
                "board": bench.board.name,
                "board_kind": bench.board.kind,
                "board_time": bench.board.time,
                "run": run.id,
                "test": run.test.name,
                "iperf_version": run.test.version,
                "proto": run.test.proto,
                "mode": run.test.mode,
                "direction": row.way,
                "role": run.test.role,
                "layer": run.board.layer if run.board and run.board.layer else run.test.layer,
                "repeat": run.repeat,
                "status": run.status,
                "error_kind": run.error.kind if run.error else None,
                "error_text": run.error.text if run.error else None,
                "started": run.started,
                "board_bits_per_second": row.board_bps,
                "peer_bits_per_second": row.peer_bps,
                "delivered_bits_per_second": row.delivered_bps,
                "difference_percent": None if difference is None else difference * 100,
                "flagged": row.direction.flagged,
                "exempt": row.direction.exempt,
                "board_bytes": board.bytes if board else None,
                "board_seconds": _scaled(board.us, 1e6) if board else None,
                "peer_bytes": peer.bytes if peer else None,
                "peer_seconds": _scaled(peer.us, 1e6) if peer else None,
                "jitter_ms": _scaled(row.jitter_us, 1e3),
                "packets": row.packets,
                "lost_packets": row.lost,
                "lost_percent": row.loss_percent,
                "out_of_order": row.ooo,
                "retries": row.retries,
                "enomem": row.enomem,
                "stall_ms": _scaled(row.stall_us, 1e3),
                "bound_bits_per_second": row.bound.bps if row.bound else None,
                "bound_of": row.bound.what if row.bound else None,
                "above_bound": bool(row.impossible),
                "peer_program": run.peer.program if run.peer else None,
                "length_bytes": limits.option(run, "length"),
                "window_bytes": limits.option(run, "window"),
                "parallel": limits.option(run, "parallel"),
                "target_bits_per_second": limits.option(run, "bandwidth"),
            }
        )
    return _table(RESULT_FIELDS, table)


def _interval(interval: Interval) -> dict[str, object]:
    return {
        "stream": interval.id,
        "board_sends": interval.sender,
        "start_s": interval.start_us / 1e6,
        "end_s": interval.end_us / 1e6,
        "bytes": interval.bytes,
        "bits_per_second": interval.bits_per_second,
        "packets": interval.packets,
        "lost_packets": interval.lost,
        "out_of_order": interval.ooo,
        "jitter_ms": _scaled(interval.jitter_us, 1e3),
        "retries": interval.retries,
        "enomem": interval.enomem,
        "omitted": interval.omitted,
    }


def intervals(bench: Bench) -> str:
    """Every interval of every stream as either end counted it; `end` is "board" or "peer"."""

    def table() -> Iterable[dict[str, object]]:
        for run in bench.runs:
            for end, result in (("board", run.board), ("peer", run.peer)):
                for interval in result.intervals if result else ():
                    yield {
                        "bench": bench.id,
                        "board": bench.board.name,
                        "run": run.id,
                        "test": run.test.name,
                        "end": end,
                        **_interval(interval),
                    }

    return _table(INTERVAL_FIELDS, table())
