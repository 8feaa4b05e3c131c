"""Downloads: by ranges, resumed, checked, over servers that behave in every way they do."""

import re

import pytest

from browser.download_page import CHUNK, DATA

OTHER = DATA[::-1]


def test_only_chunks_that_are_asked_for_come_until_all_are_over_several_connections(download):
    code = """
    const source = await half.cachedSource(argument.url, {chunkNbytes: 1 << 16});
    const part = await source.read(5 * 65536 + 7, 65536);
    source.close();
    return [...part.slice(0, 8)];
    """
    assert download.run(code)["value"] == list(DATA[5 * CHUNK + 7 : 5 * CHUNK + 15])
    asked = download.files.asked()
    assert asked == [f"bytes={i * CHUNK}-{(i + 1) * CHUNK - 1}" for i in (0, 5, 6)]
    download.files.delay_s = 0.005
    download.loaded()
    assert 3 <= download.files.most_active <= 6


def test_a_cut_download_goes_on(download):
    message = download.cut()["message"]
    assert "kept" in message
    # How much of what was sent has arrived when the connections break is the browser's affair.
    kept = int(re.search(rf"(\d+) of {len(DATA)} bytes are here", message).group(1))
    download.loaded()
    asked = [w.removeprefix("bytes=").split("-") for w in download.files.asked()]
    assert min(int(start) for start, _ in asked) > 0
    assert sum(int(end) + 1 - int(start) for start, end in asked) <= len(DATA) - kept < len(DATA)


def test_a_cut_download_of_a_server_without_ranges_starts_over(download):
    download.cut()
    download.files.ranges = False
    download.loaded()
    assert len(download.files.log) == 1


def test_a_wrong_range_is_not_appended(download):
    download.cut()
    download.files.shift = 7
    download.loaded()
    assert download.files.asked()[-1] is None


@pytest.mark.parametrize("size", ["same", "shorter"])
def test_another_version_of_the_file_starts_over(download, size):
    download.cut()
    data = OTHER if size == "same" else OTHER[: 3 * CHUNK + 5]
    download.data, download.files.etag = data, '"two"'
    download.loaded()
    assert download.asks_nothing()


def test_across_origins_nothing_is_appended_without_a_readable_version(across):
    across.files.exposed = False
    across.cut()
    across.data = OTHER
    across.loaded()
    assert across.files.asked()[-1] is None
    assert across.asks_nothing()


def test_across_origins_with_exposed_headers_it_goes_on(across):
    across.cut()
    across.loaded()
    assert None not in across.files.asked()
    assert "bytes=0-65535" not in across.files.asked()


def test_a_network_that_comes_and_goes(download):
    download.files.cuts = [70_000, 10, 0, 200_000, 65_536, 0, 3, 90_000]
    download.files.statuses = [200, 503, 200, 429, 500]
    assert download.loaded()["warnings"] == []


@pytest.mark.slow
@pytest.mark.parametrize("manner", [{"ranges": False}, {"shift": 7}])
def test_a_server_that_changes_its_manners_in_the_middle(download, manner):
    def change(_):
        if len(download.files.log) == 3:
            download.files.cuts = [10, 70_000]
            for name, value in manner.items():
                setattr(download.files, name, value)

    download.files.on_sent = change
    download.loaded()


def test_a_cut_stream_of_unknown_version_is_told_and_another_load_is_right(across):
    across.files.exposed, across.files.cuts = False, [CHUNK, 900_000]
    failed = across.load()["error"]
    assert (failed["code"], failed["restart"]) == ("NetworkError", True)
    across.loaded()


def test_a_change_while_it_is_read_is_told_and_another_load_is_right(download):
    def change(_):
        if sum(1 for _ in download.files.log) > 2:
            download.data, download.files.etag = OTHER, '"two"'

    download.files.on_sent = change
    failed = download.load()["error"]
    assert (failed["code"], failed["restart"]) == ("NetworkError", True)
    download.files.on_sent = None
    download.loaded()


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html; charset=utf-8", b"<p>sign in</p>"),
        ("application/octet-stream", b"\n<!DOCTYPE html><title>404</title>"),
    ],
)
@pytest.mark.parametrize("ranges", [True, False])
def test_a_web_page_is_refused_and_not_kept(download, content_type, body, ranges):
    download.data, download.files.content_type = body, content_type
    download.files.ranges = ranges
    failed = download.load()["error"]
    assert failed["code"] == "FormatError"
    assert body.decode()[:9].strip() in failed["message"]
    assert download.kept() == []
    download.data, download.files.content_type = DATA, "application/octet-stream"
    download.loaded()


@pytest.mark.slow
def test_a_login_page_does_not_cost_what_has_arrived(download):
    download.cut()
    download.files.content_type = "text/html"
    assert download.load()["error"]["code"] == "FormatError"
    download.files.content_type = "application/octet-stream"
    download.files.log.clear()
    download.loaded()
    assert "bytes=0-65535" not in download.files.asked()


@pytest.mark.slow
@pytest.mark.parametrize("status", [403, 404])
def test_a_refusal_is_told_at_once(download, status):
    download.files.statuses = [status] * 9
    failed = download.load()["error"]
    assert failed["code"] == "NetworkError" and f"answered {status}" in failed["message"]
    assert len(download.files.log) == 1


def test_bodies_of_unknown_length(download):
    download.files.ranges, download.files.lengths = False, False
    download.loaded()
    assert download.asks_nothing()


def test_an_aborted_download_rejects_with_the_reason_and_goes_on_later(download):
    download.files.delay_s = 0.005
    code = """
    const controller = new AbortController();
    const seen = [];
    const source = await half.cachedSource(argument.url, {chunkNbytes: 1 << 16,
      signal: controller.signal, onProgress: ({loaded}) => {
        seen.push(loaded);
        if (loaded > 400_000) controller.abort('my reason');
      }});
    source.fetchAll();
    const reads = [20, 24, 28].map((i) => source.read(i * 65536, 65536).catch((e) => e));
    const one = (await Promise.all(reads)).find((found) => !(found instanceof Uint8Array));
    const two = await source.read(26 * 65536, 10).catch((e) => e);
    const {signal} = controller;
    const three = await half.cachedSource(argument.url, {signal}).catch((e) => e);
    return [one, two, three, seen.at(-1)];"""
    *reasons, loaded = download.run(code)["value"]
    assert reasons == ["my reason"] * 3
    assert loaded < 0.6 * len(DATA)
    download.files.delay_s = 0
    download.files.log.clear()
    download.loaded()
    assert "bytes=0-65535" not in download.files.asked()


@pytest.mark.slow
def test_reads_outside_of_the_file_are_refused(download):
    code = """const source = await half.cachedSource(argument.url, {chunkNbytes: 1 << 16});
    try { return await source.read(source.nbytes - 3, 4); } finally { source.close(); }"""
    assert download.run(code)["error"]["code"] == "FormatError"
