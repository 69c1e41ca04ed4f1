"""tiny, a toy over NumPy. This piece: collectives, built from passing things on."""

import numpy as np

sent = []  # the bytes of each message


def ring(count):
    """Each device and the next one; after the last comes the first."""
    return [(device, (device + 1) % count) for device in range(count)]


def ppermute(pieces, pairs):
    """For each pair (source, to) device `to` gets the piece of `source`."""
    got = [np.zeros_like(piece) for piece in pieces]
    for source, to in pairs:
        got[to] = pieces[source]
        sent.append(pieces[source].nbytes)
    return got


def all_reduce(pieces):
    """The sum of all pieces, on every device; each sends to the next one only."""
    total, passing = pieces, pieces
    for _ in range(len(pieces) - 1):
        passing = ppermute(passing, ring(len(pieces)))
        total = [mine + new for mine, new in zip(total, passing)]
    return total


def reduce_scatter(pieces):
    """Device d gets part d of the sum. A partial sum goes around and ends there."""
    count = len(pieces)
    parts = [np.split(piece, count) for piece in pieces]
    passing = [parts[d][(d - 1) % count] for d in range(count)]
    for turn in range(1, count):
        passing = ppermute(passing, ring(count))
        passing = [passing[d] + parts[d][(d - 1 - turn) % count] for d in range(count)]
    return passing


def all_gather(pieces):
    """All pieces, one after the other, on every device."""
    count = len(pieces)
    rows, passing = [{d: pieces[d]} for d in range(count)], pieces
    for turn in range(1, count):
        passing = ppermute(passing, ring(count))
        for device, new in enumerate(passing):
            rows[device][(device - turn) % count] = new
    return [np.concatenate([row[d] for d in range(count)]) for row in rows]
