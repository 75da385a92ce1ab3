"""Could and must, limits for every known prefix, and what is owed."""

from hypothesis import given
from hypothesis import strategies as st

from amqpscope.limits import MAX_LIMITS
from amqpscope.model.certainty import CERTAIN, LEGAL, POSSIBLE
from amqpscope.tracking.knowledge import CONNECTION, NO_SERIAL, Knowledge, PeerLimits


def test_could_and_must_only_grow() -> None:
    knowledge = Knowledge()
    knowledge.advance(100)
    knowledge.advance(60)
    assert knowledge.could == 100
    knowledge.prove(40)
    knowledge.prove(20)
    assert knowledge.must == 40


def test_nothing_beyond_could_is_proved() -> None:
    knowledge = Knowledge()
    knowledge.advance(100)
    knowledge.prove(101)
    assert knowledge.must == 0
    knowledge.prove(100)
    assert knowledge.must == 100


def test_an_endpoint_that_logs_had_processed_all_that_it_could_know() -> None:
    knowledge = Knowledge()
    knowledge.exact = True
    knowledge.advance(100)
    assert (knowledge.must, knowledge.certainty(100)) == (100, CERTAIN)
    knowledge = Knowledge.load(knowledge.dump())
    knowledge.advance(120)
    assert knowledge.must == 120


def test_certainty_of_a_fault_that_rests_on_an_input() -> None:
    knowledge = Knowledge()
    knowledge.advance(100)
    knowledge.prove(50)
    assert knowledge.certainty(50) == CERTAIN
    assert knowledge.certainty(51) == POSSIBLE
    assert knowledge.confirmed(50)
    assert not knowledge.confirmed(51)


def test_credit_lowered_from_ten_to_three() -> None:
    """The example of the theory: both flows acknowledged; the 11th delivery is certain, the 4th possible."""
    limits = PeerLimits()
    limits.set(100, 10, 7)
    limits.set(200, 3, 7)
    assert limits.judge(2) == LEGAL
    assert limits.judge(3) == POSSIBLE
    assert limits.judge(9) == POSSIBLE
    assert limits.judge(10) == CERTAIN


def test_a_proved_flow_puts_earlier_ones_out_of_force() -> None:
    limits = PeerLimits()
    limits.set(100, 10, 7)
    limits.set(200, 3, 7)
    limits.settle(199)
    assert limits.judge(3) == POSSIBLE
    limits.settle(200)
    assert limits.judge(3) == CERTAIN
    assert limits.judge(2) == LEGAL


def test_what_use_of_a_bound_proves() -> None:
    limits = PeerLimits()
    limits.set(100, 5, 7)
    limits.set(200, 8, 7)
    limits.set(300, 20, 7)
    assert limits.proved_by(4) == -1
    assert limits.proved_by(5) == 200
    assert limits.proved_by(8) == 300
    assert limits.proved_by(20) == -1


def test_nothing_granted_is_certain() -> None:
    assert PeerLimits().judge(0) == CERTAIN


def test_the_same_bound_again_is_one_entry() -> None:
    limits = PeerLimits()
    limits.set(100, 5, 7)
    limits.set(200, 5, 7)
    assert len(limits) == 1
    limits.settle(300)
    assert limits.judge(5) == CERTAIN


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=12),
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(0, 31),
)
def test_limits_against_the_definition(bounds: list[int], must: int, could: int, value: int) -> None:
    """Judged as the theory says it: the value in force after each prefix k from must to could."""
    could = min(could, len(bounds))
    must = min(must, could)
    limits = PeerLimits()
    for number, bound in enumerate(bounds[:could], 1):
        limits.set(number, bound, 7)
    limits.settle(must)
    in_force = [bounds[k - 1] if k else -1 for k in range(must, could + 1)]
    if value < in_force[-1]:
        expected = LEGAL
    elif all(value >= bound for bound in in_force):
        expected = CERTAIN
    else:
        expected = POSSIBLE
    assert limits.judge(value) == expected


def test_dump_and_load() -> None:
    limits = PeerLimits()
    limits.set(100, 10, 7)
    limits.set(200, 3, 7)
    assert PeerLimits.load(limits.dump()).judge(5) == POSSIBLE
    knowledge = Knowledge()
    knowledge.advance(9)
    knowledge.prove(4)
    assert Knowledge.load(knowledge.dump()).dump() == knowledge.dump()


def test_sessions_prove_for_themselves() -> None:
    knowledge = Knowledge()
    knowledge.advance(9)
    for channel, end in ((1, 4), (2, 6)):
        knowledge.of(channel)
        assert not knowledge.confirmed(1)
        knowledge.prove(end)
    loaded = Knowledge.load(knowledge.dump())
    for one in (knowledge, loaded):
        assert [one.must, one.must_of(1), one.must_of(2), one.must_of(3)] == [6, 4, 6, 0]
        one.of(1)
        assert [one.confirmed(4), one.confirmed(5)] == [True, False]
        one.of(CONNECTION)
        assert [one.confirmed(6), one.confirmed(7)] == [True, False]


def test_more_limits_than_are_kept_allow_no_less() -> None:
    """Which one a sender knew of is lost, never that it may have known of a larger one."""
    limits = PeerLimits()
    limits.set(1, 1000, 1)
    for number in range(2, 3 * MAX_LIMITS):
        limits.set(number, number % 2, number)
    assert len(limits) == MAX_LIMITS
    assert limits.judge(999) == POSSIBLE
    assert limits.judge(1000) == CERTAIN
    assert limits.newest_packet() == 3 * MAX_LIMITS - 1


def test_bounds_that_were_set_before_their_base_was_known() -> None:
    limits = PeerLimits()
    limits.set_early(100, NO_SERIAL, 3, 7)
    limits.set_early(200, 0, 2, 8)
    limits.rebase(0xFFFFFFFB)
    assert limits.bounds == [0xFFFFFFFB + 3, 0xFFFFFFFB + 7]


def test_a_guess_beyond_the_base_need_not_be_obeyed() -> None:
    limits = PeerLimits()
    limits.set_early(100, NO_SERIAL, 100, 7)
    limits.set_early(200, 5, 1, 8)
    limits.rebase(0)
    assert limits.bounds == [100, 100]


def test_more_early_bounds_than_are_kept_allow_everything() -> None:
    limits = PeerLimits()
    for n in range(MAX_LIMITS + 1):
        limits.set_early(100 + n, 0, 1, 7)
    limits.rebase(0)
    assert len(limits) == len(limits.ends) == len(limits.packets) == MAX_LIMITS
    assert limits.bounds[0] > 0xFFFFFFFF
    assert limits.bounds[1:] == [1] * (MAX_LIMITS - 1)


def test_early_bounds_replace_those_of_a_former_base_and_survive_a_move() -> None:
    limits = PeerLimits()
    limits.set(100, 50, 7)
    limits.set_early(200, 0xFFFFFFFF, 5, 8)
    moved = PeerLimits.load(limits.dump())
    moved.rebase(0)
    assert moved.dump() == ((200,), (4,), (8,), ())
