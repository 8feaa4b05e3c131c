"""The JavaScript heap of a page's workers, sampled while something runs there."""

import asyncio
import itertools
import json

EVERY_S = 0.05
ANSWER_S = 60
"""A worker answers between two of its tasks, and compiling or planning may be one."""


class WorkerHeap:
    """Bytes of the workers of `page`, their buffers outside of the heap included, but no wasm."""

    def __init__(self, thread, page):
        self.thread, self.page = thread, page
        self.samples = []
        self._sessions = set()
        self._count = itertools.count(1)
        self._answers = {}

    def __enter__(self):
        self.thread.call(self._attach)
        return self

    def __exit__(self, *_):
        async def end():
            self._task.cancel()
            await self._cdp.detach()

        self.thread.call(end)

    def now(self):
        """The bytes at the moment, garbage collected before they are counted."""
        return self.thread.call(lambda: self._sample(collect=True))

    def peak(self):
        assert not self._task.done(), "the samples ended early"
        return max(self.samples)

    async def _attach(self):
        self._cdp = await self.page.context.new_cdp_session(self.page)
        self._cdp.on("Target.attachedToTarget", lambda e: self._sessions.add(e["sessionId"]))
        self._cdp.on("Target.receivedMessageFromTarget", self._received)
        watch = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False}
        await self._cdp.send("Target.setAutoAttach", watch)
        await self._sample()
        self._task = asyncio.ensure_future(self._run())

    async def _run(self):
        while True:
            self.samples.append(await self._sample())
            await asyncio.sleep(EVERY_S)

    async def _sample(self, collect=False):
        total = 0
        for session in list(self._sessions):
            if collect:
                await self._ask(session, "HeapProfiler.collectGarbage")
            found = await self._ask(session, "Runtime.getHeapUsage")
            total += found["usedSize"] + found["backingStorageSize"]
        return total

    async def _ask(self, session, method):
        number = next(self._count)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        message = json.dumps({"id": number, "method": method})
        await self._cdp.send(
            "Target.sendMessageToTarget", {"sessionId": session, "message": message}
        )
        async with asyncio.timeout(ANSWER_S):
            return await answer

    def _received(self, event):
        message = json.loads(event["message"])
        answer = self._answers.pop(message.get("id"), None)
        # A watch that has ended waits for no answer any more.
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(RuntimeError(message["error"]["message"]))
        else:
            answer.set_result(message["result"])
