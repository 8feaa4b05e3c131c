"""A file that downloads while Python starts: who goes on, and where it is not begun."""

import pytest

from browser.download_page import DATA
from browser.test_download_cache import NO_CACHES, NO_FILES

AHEAD = """
const {fetchAhead} = await import('/js/download.js');
const stop = new AbortController();
let here = 0;
const onProgress = ({loaded}) => {
  here = loaded;
  if (here >= argument.enough) stop.abort();
};
const options = {chunkNbytes: 1 << 16, retryMs: [5], onProgress};
await fetchAhead(argument.url, {signal: stop.signal, ...options});
return here;
"""
OTHER = 2


def test_another_worker_goes_on_where_it_was_stopped(download):
    download.files.delay_s = 0.002
    here = download.run(AHEAD, which=OTHER, enough=len(DATA) // 3)["value"]
    assert len(DATA) // 3 <= here < len(DATA)
    (kept,) = download.kept()
    assert kept["stored"] >= here and not kept["complete"]
    download.files.log.clear()
    # What another holds is warned of: nothing is held any more.
    assert download.loaded()["warnings"] == []
    spans = [asked.removeprefix("bytes=").split("-") for asked in download.files.asked()]
    assert sum(int(end) + 1 - int(start) for start, end in spans) == len(DATA) - kept["stored"]


def test_a_whole_file_waits_to_be_told(download):
    value = download.visit.page.evaluate(
        """async ([code, argument]) => {
          const whole = (n) => code.replace('await fetchAhead', 'const done = fetchAhead').replace(
            'return here;', `while (here < ${n}) await new Promise((wake) => setTimeout(wake, 5));
            stop.abort(); await done; return here;`);
          return (await inside(2, whole(argument.enough), {...argument, enough: Infinity})).value;
        }""",
        [AHEAD, {"url": download.url, "enough": len(DATA)}],
    )
    assert value == len(DATA)
    assert download.asks_nothing()


@pytest.mark.parametrize("manner", ["no ranges", "no version", "weak version", "gone"])
def test_what_nobody_could_go_on_with_is_not_begun(download, manner):
    if manner == "no ranges":
        download.files.ranges = False
    elif manner == "gone":
        download.files.statuses = [404]
    else:
        download.files.etag = None if manner == "no version" else 'W/"one"'
        download.files.modified = None
    assert download.run(AHEAD, which=OTHER, enough=1)["value"] == 0
    assert len(download.files.log) == 1 and download.kept() == []
    assert download.loaded()["warnings"] == []


def test_nothing_is_asked_for_where_nothing_can_be_kept(download):
    download.again()
    download.run(NO_FILES + NO_CACHES, which=OTHER)
    assert download.run(AHEAD, which=OTHER, enough=1)["value"] == 0
    assert download.files.log == []
    download.again()


def test_it_does_not_wait_for_another_that_downloads_the_same(download):
    first = """
      const source = await half.cachedSource(argument.url, {chunkNbytes: 1 << 16});
      self.goOn = () => source.fetchAll();
      return source.nbytes;"""
    assert download.run(first)["value"] == len(DATA)
    download.files.log.clear()
    assert download.run(AHEAD, which=OTHER, enough=1)["value"] == 0
    assert download.files.log == []
    download.run("goOn()")
    download.loaded()
