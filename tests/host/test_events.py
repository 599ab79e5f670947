"""Events: kinds are recognised, unknown ones kept, a torn end of records.jsonl does not lose the rest."""

import pytest
from upyperf import events, records


def test_board_and_peer_results_are_told_apart():
    board = {
        "source": "board",
        "kind": "result",
        "version": 3,
        "role": "client",
        "proto": "tcp",
        "mode": "send",
    }
    event = events.parse_event({**board, "sent": {"bytes": 10, "us": 8}})
    assert isinstance(event, events.BoardResultEvent)
    assert event.result().sent.bits_per_second == pytest.approx(1e7)
    event = events.parse_event({"source": "peer", "kind": "result", "program": "iperf3 3.12"})
    assert isinstance(event, events.PeerResultEvent)


def test_unknown_kind_keeps_its_fields():
    event = events.parse_event({"source": "board", "kind": "weather", "wind": 3})
    assert event.model_dump()["wind"] == 3


def test_every_line_comes_back():
    first = events.parse_event(
        {"source": "peer", "kind": "interval", "run": "r01", "id": 1, "sender": True, "start_us": 0,
         "end_us": 1_000_000, "bytes": 125_000}
    )  # fmt: skip
    again = events.parse_events([first.model_dump_json()])
    assert again == [first]
    assert again[0].bits_per_second == 1e6


def test_torn_last_line_is_left_out_but_a_torn_line_before_is_an_error():
    good = events.NoteEvent(source="host", text="x").model_dump_json()
    assert len(events.parse_events([good, good, good[:20]])) == 2
    with pytest.raises(ValueError, match="line 1 is not an event"):
        events.parse_events([good[:20], good])


def test_sum_has_no_rate_without_time():
    assert records.Sum(bytes=5, us=0).bits_per_second is None
    assert records.Sum(bytes=5, us=1, packets=10, lost=1).lost_fraction == 0.1


def test_planned_length():
    test = records.Test(name="x", mode="tradeoff", version=2, options={"time": 3})
    assert test.seconds == 6
    assert records.Test(name="x", options={"omit": 2}).seconds == 12
