"""Functions that leak their argument, each into another place.

`test_leaks.py` loads this file afresh, into a heap from which all older objects are
taken out: a checker of leaks asks the garbage collector who refers to what, which looks
at every object there is.
"""

KEPT = []


class Holder:
    pass


def into_list(x):
    y = x * 2
    KEPT.append(y)
    return y


def into_class(x):
    Holder.value = x
    return x


def into_global(x):
    global KEPT_GLOBAL
    KEPT_GLOBAL = x
    return x


def into_exception(x):
    try:
        raise ValueError
    except ValueError as error:
        KEPT.append(error)
    return x


def into_closure(x):
    def inner():
        return x

    KEPT.append({"inner": [inner]})
    return x


LEAKING = (into_list, into_class, into_global, into_exception, into_closure)
