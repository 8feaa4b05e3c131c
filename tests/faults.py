"""An executor that fails when it is told to: the n-th call, with the error that call can have."""

from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.errors import DeviceLost, NetworkError, OutOfMemory, WebGPUPyError

OWN = {
    "create_buffers": OutOfMemory,
    "write": WebGPUPyError,
    "upload": NetworkError,
    "read": WebGPUPyError,
    "create_pipelines": WebGPUPyError,
    "load_plan": OutOfMemory,
    "run": WebGPUPyError,
}
"""Every call that can fail, and what a device that goes on living says then."""


class FaultyBridge(CpuBridge):
    """Fails at call `at`, counted from 1: by that call's own error, or with `loss` for good."""

    def __init__(self, at=0, loss=False):
        super().__init__()
        self.at, self.loss = at, loss
        self.names = []
        for name in OWN:
            setattr(self, name, self._failing(name, getattr(self, name)))

    def _failing(self, name, method):
        def call(*args):
            if self.lost:
                raise DeviceLost("this device was lost on purpose")
            self.names.append(name)
            if len(self.names) == self.at:
                if not self.loss:
                    raise OWN[name](f"{name} failed on purpose")
                self.lost = True
                raise DeviceLost("this device was lost on purpose")
            return method(*args)

        return call
