"""Runs a generator of cases in a child process and survives the child's crash.

PyTorch's internal operators trust their callers, and a varied call can take the process down. The function counts its
attempts with the tick it is given; when the child dies, the attempt it died in is skipped and the function starts again.
"""

import mmap
import os
import pickle
import struct
import tempfile

RETRIES = 40


def run(function):
    """function(tick) -> result; tick() is called before each attempt and tells whether to skip it."""
    skip = set()
    counter = mmap.mmap(-1, 8)
    for _ in range(RETRIES):
        counter[:] = struct.pack("q", -1)
        with tempfile.TemporaryFile() as box:
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    null = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(null, 2)
                    attempt = -1

                    def tick():
                        nonlocal attempt
                        attempt += 1
                        counter[:] = struct.pack("q", attempt)
                        return attempt in skip

                    pickle.dump((True, function(tick)), box)
                    box.flush()
                    status = 0
                except BaseException as e:  # reported by the parent
                    import traceback
                    box.seek(0)
                    box.truncate()
                    pickle.dump((False, traceback.format_exc()), box)
                    box.flush()
                    status = 0
                finally:
                    os._exit(status)
            _, status = os.waitpid(pid, 0)
            if status == 0:
                box.seek(0)
                ok, value = pickle.load(box)
                if not ok:
                    raise RuntimeError(value)
                return value, len(skip)
        skip.add(struct.unpack("q", counter[:])[0])
    return None, len(skip)
