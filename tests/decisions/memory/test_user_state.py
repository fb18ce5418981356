"""A user's state: its initial values, how evidence changes them, and that nothing else does."""

from __future__ import annotations

from functools import partial

import pytest
from django.db import IntegrityError, transaction

from decisions.foundation.errors import Forbidden, ForbiddenUser
from decisions.identity.principals import Principal, authenticate, create_token
from decisions.memory.state import AxisChange, apply_changes, cost_of, get_state, read_state
from decisions.models import AxisValue, Evidence, User
from tests.support.decisions.continuity import owner_of
from tests.support.runs.concurrent_calls import at_once


def test_a_user_without_evidence_has_the_initial_values(principal: Principal) -> None:
    state = get_state(principal=principal, user_id="alice")
    assert state["axes"]["money"] == {"value": 0.5, "confidence": 0.3, "updated_at": None}
    assert state["axes"]["reliability"] == {"value": 0.8, "confidence": 0.5, "updated_at": None}
    assert (state["user_id"], state["main_constraint"]) == ("alice", "money")
    assert list(state["axes"]) == ["money", "time", "energy", "asset", "reliability", "identity"]
    assert not User.objects.exists()  # reading creates no user


def test_an_axis_changes_by_a_quarter_of_the_change_times_its_confidence(
    principal: Principal,
) -> None:
    alice = owner_of(principal)
    apply_changes(alice, [AxisChange("time", -0.8, 0.5, "chat", "two days lost", 7)])
    time = read_state(alice).axes["time"]
    assert (time.value, time.confidence) == (0.4, 0.3875)
    row = Evidence.objects.get()
    assert (row.axis, row.source, row.decision_id, row.note) == ("time", "chat", 7, "two days lost")
    assert (row.value_before, row.value_after, row.delta, row.confidence) == (0.5, 0.4, -0.8, 0.5)
    assert read_state(alice).main_constraint == "time"


def test_changes_of_one_call_add_up(principal: Principal) -> None:
    alice = owner_of(principal)
    apply_changes(
        alice, [AxisChange("energy", -1, 1.0, "chat"), AxisChange("energy", -1, 1.0, "chat")]
    )
    assert read_state(alice).axes["energy"].value == 0.0
    assert list(Evidence.objects.order_by("id").values_list("value_after", flat=True)) == [0.25, 0]


@pytest.mark.parametrize(("delta", "end"), [(-1.0, 0.0), (1.0, 1.0)])
def test_a_value_stays_within_0_and_1(principal: Principal, delta: float, end: float) -> None:
    alice = owner_of(principal)
    for _ in range(5):
        apply_changes(alice, [AxisChange("money", delta, 1.0, "outcome")])
    assert read_state(alice).axes["money"].value == end


def test_a_change_without_effect_writes_no_rows(principal: Principal) -> None:
    apply_changes(owner_of(principal), [AxisChange("money", 0, 1, "chat")])
    apply_changes(owner_of(principal), [AxisChange("money", 1, 0, "chat")])
    assert not AxisValue.objects.exists()
    assert not Evidence.objects.exists()


def test_a_maximum_limits_a_change_and_never_lowers_a_value(principal: Principal) -> None:
    alice = owner_of(principal)
    apply_changes(alice, [AxisChange("reliability", 1, 0.8, "chat")])
    apply_changes(alice, [AxisChange("reliability", 1, 1.0, "streak", at_most=0.9)])
    assert read_state(alice).axes["reliability"].value == 1.0


def test_concurrent_changes_are_all_counted(principal: Principal) -> None:
    alice = owner_of(principal)
    at_once([partial(apply_changes, alice, [AxisChange("asset", 0.1, 1.0, "chat")])] * 8)
    assert Evidence.objects.count() == 8
    assert read_state(alice).axes["asset"].value == pytest.approx(0.5 + 8 * 0.025)


def test_the_same_user_id_in_two_workspaces_is_two_users(
    principal: Principal, outsider: Principal
) -> None:
    apply_changes(owner_of(principal), [AxisChange("money", -1, 1, "chat")])
    assert read_state(owner_of(outsider)).axes["money"].value == 0.5


def test_a_cost_weighs_scarce_axes_and_is_five_times_higher_if_irreversible(
    principal: Principal,
) -> None:
    state = read_state(owner_of(principal))
    assert cost_of({"money": -0.4, "reliability": 0.5}, state, irreversible=False) == 0.3
    assert cost_of({"money": -0.4, "reliability": 0.5}, state, irreversible=True) == 1.5
    everything = dict.fromkeys(state.axes, -1.0)
    assert cost_of(everything, state, irreversible=True) == 10.0


@pytest.mark.parametrize("user_id", ["bob", "nobody"])
def test_reading_another_user_is_refused_the_same_whether_it_exists_or_not(
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
    apply_changes(owner_of(principal), [AxisChange("money", 1, 1, "chat")])
    with pytest.raises(IntegrityError, match="axis_within_0_and_1"), transaction.atomic():
        AxisValue.objects.update(value=1.5)


def test_the_state_of_one_user_is_not_that_of_another(principal: Principal) -> None:
    apply_changes(owner_of(principal), [AxisChange("money", -1, 1, "chat")])
    assert read_state(owner_of(principal, "bob")).axes["money"].value == 0.5
