"""What training code raises is one line that says where it was raised."""

import json

from pfprofile.train.user_errors import MOST_CHARACTERS, error_words


def raised(work):
    try:
        work()
    except Exception as error:  # noqa: BLE001 (any is the subject)
        return error
    raise AssertionError("nothing was raised")


def odd():
    raise ValueError("the data\n  is odd")


def line_of(function, offset=1):
    return function.__code__.co_firstlineno + offset


def test_the_line_that_raised_is_named_and_the_message_is_whole():
    assert error_words(raised(odd)) == f"test_user_errors.py:{line_of(odd)}: ValueError: the data is odd"


def test_the_workloads_own_line_is_named_not_the_librarys():
    def parse():
        json.loads("{")

    words = error_words(raised(parse), __file__)
    assert words.startswith(f"test_user_errors.py:{line_of(parse)}: JSONDecodeError: ")
    assert error_words(raised(parse)) == words


def test_an_error_without_words_is_named_alone():
    assert error_words(MemoryError()) == "MemoryError"


def test_a_parameter_without_a_gradient_is_explained():
    long = "Expected to have finished reduction in the prior iteration before starting a new one. " * 3
    assert "got no gradient" in error_words(RuntimeError(long))


def test_a_long_message_is_cut():
    assert len(error_words(ValueError("x" * 5000))) < MOST_CHARACTERS + 50
