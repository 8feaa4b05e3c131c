"""An executor that writes down what it is asked, and computes on NumPy."""

from webgpu_py.backends.cpu import CpuBridge

RECORDED = (
    "create_buffers",
    "write",
    "upload",
    "read",
    "create_pipelines",
    "load_plan",
    "run",
    "profile",
    "destroy_plan",
    "destroy_buffers",
)


class RecordingBridge(CpuBridge):
    """A CpuBridge whose `calls` lists (name, arguments) in order."""

    def __init__(self):
        super().__init__()
        self.calls = []
        for name in RECORDED:
            setattr(self, name, self._recorded(name, getattr(self, name)))

    def _recorded(self, name, method):
        def call(*args):
            self.calls.append((name, args))
            return method(*args)

        return call

    def count(self, name):
        """How often a call was made."""
        return sum(1 for called, _ in self.calls if called == name)
