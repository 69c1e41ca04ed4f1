"""Names the programs that this machine lacks, and the tests that are skipped for it."""

import shutil

WANTED = {
    "chromium or google-chrome": "views are not tried in a browser",
    "g++": "nothing written in C++ is built",
    "node": "the sources of the views are not built again",
}


def missing() -> dict[str, str]:
    """Returns what is missing and what is skipped for it."""
    return {
        names: consequence
        for names, consequence in WANTED.items()
        if not any(shutil.which(name) for name in names.split(" or "))
    }


if __name__ == "__main__":
    for names, consequence in missing().items():
        print(f"not on this machine: {names}; {consequence}.")
