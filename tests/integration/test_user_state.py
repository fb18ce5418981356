"""A user's state: where it starts, how evidence moves it, and that nothing else does."""

from __future__ import annotations

from functools import partial

import pytest
from django.db import IntegrityError, transaction

from decisions.continuity.state import AxisChange, apply_changes, cost_of, get_state, read_state
from decisions.errors import Forbidden, ForbiddenUser
from decisions.identity.principals import Principal, authenticate, create_token
from decisions.models import AxisValue, Evidence, User
from tests.integration.racing import at_once
from tests.support.continuity import owner_named


def test_a_user_of_whom_nothing_is_known_has_the_values_to_start_from(principal: Principal) -> None:
    told = get_state(principal=principal, user_id="alice")
    assert told["axes"]["money"] == {"value": 0.5, "confidence": 0.3, "updated_at": None}
    assert told["axes"]["reliability"] == {"value": 0.8, "confidence": 0.5, "updated_at": None}
    assert (told["user_id"], told["main_constraint"]) == ("alice", "money")
    assert list(told["axes"]) == ["money", "time", "energy", "asset", "reliability", "identity"]
    assert not User.objects.exists()  # looking makes nobody


def test_an_axis_moves_by_a_quarter_of_the_told_change_times_its_confidence(
    principal: Principal,
) -> None:
    alice = owner_named(principal)
    apply_changes(alice, [AxisChange("time", -0.8, 0.5, "chat", "two days gone", 7)])
    time = read_state(alice).axes["time"]
    assert (time.value, time.confidence) == (0.4, 0.3875)
    row = Evidence.objects.get()
    assert (row.axis, row.source, row.decision_id, row.note) == ("time", "chat", 7, "two days gone")
    assert (row.value_before, row.value_after, row.delta, row.confidence) == (0.5, 0.4, -0.8, 0.5)
    assert read_state(alice).main_constraint == "time"


def test_moves_of_one_call_add_up(principal: Principal) -> None:
    alice = owner_named(principal)
    apply_changes(
        alice, [AxisChange("energy", -1, 1.0, "chat"), AxisChange("energy", -1, 1.0, "chat")]
    )
    assert read_state(alice).axes["energy"].value == 0.0
    assert list(Evidence.objects.order_by("id").values_list("value_after", flat=True)) == [0.25, 0]


@pytest.mark.parametrize(("delta", "end"), [(-1.0, 0.0), (1.0, 1.0)])
def test_a_value_stays_within_0_and_1(principal: Principal, delta: float, end: float) -> None:
    alice = owner_named(principal)
    for _ in range(5):
        apply_changes(alice, [AxisChange("money", delta, 1.0, "outcome")])
    assert read_state(alice).axes["money"].value == end


def test_a_move_that_says_nothing_leaves_no_trace(principal: Principal) -> None:
    assert apply_changes(owner_named(principal), [AxisChange("money", 0, 1, "chat")]) == []
    assert apply_changes(owner_named(principal), [AxisChange("money", 1, 0, "chat")]) == []
    assert not AxisValue.objects.exists()
    assert not Evidence.objects.exists()


def test_a_ceiling_holds_a_move_back_and_never_lowers(principal: Principal) -> None:
    alice = owner_named(principal)
    apply_changes(alice, [AxisChange("reliability", 1, 0.8, "chat")])
    apply_changes(alice, [AxisChange("reliability", 1, 1.0, "streak", at_most=0.9)])
    assert read_state(alice).axes["reliability"].value == 1.0


def test_moves_at_once_are_all_counted(principal: Principal) -> None:
    alice = owner_named(principal)
    at_once([partial(apply_changes, alice, [AxisChange("asset", 0.1, 1.0, "chat")])] * 8)
    assert Evidence.objects.count() == 8
    assert read_state(alice).axes["asset"].value == pytest.approx(0.5 + 8 * 0.025)


def test_users_of_one_name_in_two_workspaces_are_two(
    principal: Principal, stranger: Principal
) -> None:
    apply_changes(owner_named(principal), [AxisChange("money", -1, 1, "chat")])
    assert read_state(owner_named(stranger)).axes["money"].value == 0.5


def test_a_cost_is_what_is_scarce_and_five_times_that_for_good(principal: Principal) -> None:
    state = read_state(owner_named(principal))
    assert cost_of({"money": -0.4, "reliability": 0.5}, state, irreversible=False) == 0.3
    assert cost_of({"money": -0.4, "reliability": 0.5}, state, irreversible=True) == 1.5
    everything = dict.fromkeys(state.axes, -1.0)
    assert cost_of(everything, state, irreversible=True) == 10.0


@pytest.mark.parametrize("user_id", ["bob", "nobody"])
def test_another_user_reads_the_same_whether_there_is_one_or_not(
    principal: Principal, user_id: str
) -> None:
    create_token(name="b", users=["bob"])
    caller = authenticate(create_token(name="a", users=["alice"]))
    with pytest.raises(ForbiddenUser, match="may not act for this user_id"):
        get_state(principal=caller, user_id=user_id)


def test_reading_needs_the_scope(principal: Principal) -> None:
    caller = authenticate(create_token(name="a", scopes=frozenset({"runs:read"})))
    with pytest.raises(Forbidden):
        get_state(principal=caller, user_id="alice")


def test_the_database_refuses_a_value_out_of_range(principal: Principal) -> None:
    apply_changes(owner_named(principal), [AxisChange("money", 1, 1, "chat")])
    with pytest.raises(IntegrityError), transaction.atomic():
        AxisValue.objects.update(value=1.5)
