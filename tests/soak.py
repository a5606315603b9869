"""How many examples the random tests try: a few in `make test`, many in `make soak`, which sets MUNIMENT_SOAK."""

import os

# What takes long and has a shorter one beside it that would fail too: told in a soak alone.
LONG = (
    "test_as_of_a_moment_when_todays_best_hundred_did_not_exist_yet_the_old_ones_come_as_they_came_then",
    "test_sixty_recalls_of_all_shapes_replay_the_same_whatever_came_later",
    "test_of_the_ten_best_nearly_all_are_found",
    "test_a_person_sees_headings_and_lines_that_fit_into_80_columns",
    "test_whatever_the_environment_says_the_demo_ends_well_says_nothing_beside_its_document_and_leaves_nothing",
    "test_told_to_end_the_demo_leaves_no_folder_no_server_and_no_trace[2-130]",
    "test_what_is_blocked_may_come_again_and_what_is_rejected_disputes_nothing[client]",
    "test_what_is_blocked_may_come_again_and_what_is_rejected_disputes_nothing[mcp]",
    "test_questions_of_longmemeval_are_asked_each_of_its_own_chats",
    "test_conversations_of_locomo_are_found_again",
    "test_a_batch_ends_where_the_same_approved_one_by_one_ends[1]",
    "test_a_batch_ends_where_the_same_approved_one_by_one_ends[2]",
)
SOAKING = bool(os.environ.get("MUNIMENT_SOAK"))
_TIMES = 20 if SOAKING else 1


def examples(few: int) -> int:
    """So many, and twenty times as many in a soak."""
    return few * _TIMES
