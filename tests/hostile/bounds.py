"""What reading a hostile file may cost."""

import contextlib
import signal
import tracemalloc


@contextlib.contextmanager
def bounds(seconds=5, nbytes=64 << 20):
    """Fail past a deadline (of processor time: the machine may be busy) or a peak of memory."""

    def late(_signal, _frame):
        raise TimeoutError(f"still reading after {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert peak < nbytes
