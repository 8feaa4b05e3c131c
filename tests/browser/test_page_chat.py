"""The chat and the look inside as a visitor uses them, over a worker that answers by script."""

import pytest

from browser.pages import Visit
from webgpu_py.assets import asset_path
from webgpu_py.host.server import Server

MARKDOWN = """say: ## Title

Text with **bold**, *soft* and `code`,
[a link](https://example.com/x) and [another](javascript:alert(1)).

1. one
2. two
   - inner

```js
alert("</code><script>")
```

| a | b |
|---|---|
| 1 | 2 |

<script>window.broken = 1</script><img src=x onerror="window.broken = 1"> ![i](https://example.com/i.png)"""


@pytest.fixture(scope="module")
def site(settings, request):
    harness = request.path.parent / "harness"
    mounts = {"/": asset_path("web"), "/js/": asset_path("js")}
    mounts["/worker.js"] = harness / "fake-worker.js"
    with Server(mounts, headers=dict(settings.headers)) as running:
        yield running


@pytest.fixture(scope="module")
def shared(browser, site):
    one = Visit(browser, site).goto("/")
    yield one
    one.close()


@pytest.fixture
def chat(shared):
    """A fresh conversation in the shared page."""
    shared.page.locator("#new-chat").click()
    return shared


def ask(visit, text):
    visit.by("prompt").fill(text)
    visit.page.keyboard.press("Enter")


def answered(visit, text):
    ask(visit, text)
    visit.page.locator(".after").wait_for()
    return visit.by("answer")


def test_an_answer_streams_in_and_is_summed_up(chat):
    answer = answered(chat, "hello there")
    assert "You said “hello there”" in answer.inner_text()
    after = chat.page.locator(".after").inner_text()
    assert "tokens/s" in after and "first after" in after
    assert "of 256 tokens" in chat.page.locator(".chat-status").inner_text()
    assert "131 MB" in chat.page.locator(".chat-status").inner_text()
    assert "leaves this machine" in chat.page.locator("footer").inner_text()
    assert chat.page.locator("#save-model").count() == 0, "a GGUF is ready as it is"


def test_a_conversation_grows_and_can_be_regenerated(chat):
    answered(chat, "first")
    answer = answered(chat, "second")
    assert "message 3" in answer.inner_text()
    before = answer.inner_text()
    chat.page.get_by_role("button", name="Regenerate").click()
    chat.page.locator(".after").wait_for()
    after = chat.by("answer").inner_text()
    assert "message 3" in after and after != before
    assert chat.page.locator(".message").count() == 4


def test_a_new_chat_ends_the_answer_and_keeps_nothing_of_it(chat):
    ask(chat, "slow please")
    chat.page.get_by_text("slow").nth(1).wait_for()
    chat.page.locator("#new-chat").press("Enter")
    assert chat.by("send").is_visible()
    assert "message 1" in answered(chat, "anew").inner_text()
    assert chat.page.locator(".message").count() == 2


def test_the_status_changes_under_the_focus(chat):
    """Memory is told some time after an answer; a visitor may have gone to the controls by then."""
    answered(chat, "hello")
    for control in ("sampling", "new-chat"):
        chat.page.locator(f"#{control}").focus()
        chat.page.wait_for_timeout(300)
        assert chat.page.evaluate("document.activeElement.id") == control
        chat.page.keyboard.press("Enter")
        chat.page.keyboard.press("Escape")
        chat.page.wait_for_timeout(300)
        assert chat.page.evaluate("document.activeElement.id") == control


def test_markdown_is_drawn_and_cannot_run(chat):
    answer = answered(chat, MARKDOWN)
    page = chat.page
    inside = "[data-testid=answer] "
    for selector in ("h4", "strong", "em", "p code", "ol > li > ul > li", "pre code", "table td"):
        assert page.locator(inside + selector).count() > 0, selector
    assert page.locator(inside + "a").evaluate_all("all => all.map(a => a.href)") == [
        "https://example.com/x",
        "https://example.com/i.png",
    ]
    assert page.locator(inside + "script, " + inside + "img").count() == 0
    assert "<script>window.broken" in answer.inner_text()
    assert page.evaluate("window.broken") is None
    assert chat.violations() == []


def test_stop_by_button_and_by_escape(chat):
    for stop in (lambda: chat.by("stop").click(), lambda: chat.page.keyboard.press("Escape")):
        ask(chat, "slow please")
        chat.page.get_by_text("slow").nth(1).wait_for()
        assert not chat.by("send").is_visible()
        stop()
        chat.by("send").wait_for()
        assert "Stopped" in chat.page.locator(".message").last.inner_text()
    assert "You said" in answered(chat, "still there?").inner_text()


def test_errors_are_shown_and_can_be_retried(chat):
    ask(chat, "fail ContextLength")
    chat.page.get_by_role("button", name="Start a new chat").click()
    assert chat.page.locator(".message").count() == 0
    ask(chat, "fail WrongNumbers")
    chat.page.get_by_role("button", name="Try again").wait_for()
    assert "as it was asked to" in chat.page.locator(".message").last.inner_text()
    assert "message 1" in answered(chat, "and now?").inner_text()


def test_a_lost_device_offers_to_load_the_model_again(chat):
    ask(chat, "fail DeviceLost")
    chat.wait("error")
    assert chat.error == "DeviceLost"
    chat.page.locator("#error").get_by_role("button", name="Try again").click()
    chat.wait("ready")
    assert "You said" in answered(chat, "back").inner_text()


def test_sampling_settings_by_keyboard_reach_the_engine_and_stay(chat):
    page = chat.page
    page.locator("#sampling").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Seed").fill("1234")
    page.keyboard.press("Enter")
    assert "seed 1234" in answered(chat, "x").inner_text()
    page.reload()
    chat.wait("ready")
    assert "seed 1234" in answered(chat, "x").inner_text()
    page.locator("#sampling").click()
    page.get_by_role("button", name="Back to the defaults").click()
    page.get_by_role("button", name="Done").click()


def tab_to(visit, wanted, key="Tab", most=30):
    """Press a key until `wanted`, an expression over the focused `element`, holds."""
    for _ in range(most):
        visit.page.keyboard.press(key)
        if visit.page.evaluate(f"(element => {wanted})(document.activeElement)"):
            return
    raise AssertionError(f"{most} times {key} do not lead to {wanted}")


@pytest.mark.parametrize("width", [360, 1280])
def test_by_keyboard_alone(browser, site, width):
    """From loading to an answer, a stop, another answer, and the look inside, without a pointer."""
    one = Visit(browser, site, viewport={"width": width, "height": 740}).goto("/")
    try:
        page = one.page
        one.screenshot("chat-welcome", width, 740)
        tab_to(one, "element.id === 'prompt'")
        page.keyboard.type("Say something slow")
        page.keyboard.press("Enter")
        page.get_by_text("slow").nth(1).wait_for()
        assert page.evaluate("document.activeElement.id") == "prompt"
        page.keyboard.press("Escape")
        one.by("send").wait_for()
        for line in MARKDOWN.splitlines():
            page.keyboard.type(line)
            page.keyboard.press("Shift+Enter")
        page.keyboard.press("Enter")
        page.locator(".after").wait_for()
        one.screenshot("chat-answer", width, 740)
        tab_to(one, "element.textContent === 'Regenerate'", "Shift+Tab")
        page.keyboard.press("Enter")
        page.locator(".after").wait_for()
        tab_to(one, "element.dataset.view === 'inside'", "Shift+Tab")
        page.keyboard.press("Enter")
        one.by("tokens").wait_for()
        page.locator("canvas").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        assert "“·GPU” 1:" in page.locator("output.mono").first.inner_text()
        one.screenshot("inside", width, 740)
        assert one.violations() == []
    finally:
        one.close()


KEEP = """async () => {
  const cache = await caches.open('webgpu_py');
  for (const [name, nbytes, complete] of [['one', 98e6, true], ['two', 770e6, false]]) {
    const url = `${location.origin}/models/Model-${name}.Q4_1.gguf`;
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(url));
    const hex = [...new Uint8Array(digest)].map((b) => (b + 256).toString(16).slice(1));
    const place = `https://webgpu-py.invalid/${hex.slice(0, 16).join('')}`;
    const put = (part, body) => cache.put(`${place}/${part}`, new Response(body));
    const saved = complete ? 1 : null;
    await put('manifest', JSON.stringify({url, nbytes, complete, saved, chunkNbytes: 2 << 20}));
    for (let i = 0; i < 9; i++) await put(String(i), 'bytes');
  }
}"""


@pytest.mark.parametrize("width", [360, 1280])
def test_models_and_settings_by_keyboard(browser, site, width):
    """What is kept, the settings, and a download with its progress and its end."""
    one = Visit(browser, site, viewport={"width": width, "height": 740}).goto("/")
    try:
        page = one.page
        page.evaluate(KEEP)
        tab_to(one, "element.id === 'model-button'")
        page.keyboard.press("Enter")
        kept = one.by("kept").locator("li")
        kept.nth(1).wait_for()
        assert "98.0 MB" in kept.nth(0).inner_text()
        assert "18.9 MB of 770 MB" in kept.nth(1).inner_text()
        one.screenshot("picker", width, 740)
        tab_to(one, "element.ariaLabel === 'Remove Model-one.Q4_1.gguf'")
        page.keyboard.press("Enter")
        page.get_by_text("Model-one").wait_for(state="detached")
        assert kept.count() == 1
        page.keyboard.press("Escape")
        tab_to(one, "element.id === 'sampling'")
        page.keyboard.press("Enter")
        tab_to(one, "element.name === 'temperature'")
        page.keyboard.press("ArrowRight")
        one.screenshot("sampling", width, 740)
        page.keyboard.press("Escape")
        tab_to(one, "element.id === 'model-button'", "Shift+Tab")
        page.keyboard.press("Enter")
        tab_to(one, "element.id === 'model-url'")
        page.keyboard.type(f"{site.url}/large.gguf")
        page.keyboard.press("Enter")
        page.get_by_text(" left").nth(1).wait_for()
        one.screenshot("loading", width, 740)
        tab_to(one, "element.id === 'cancel-load'")
        page.keyboard.press("Enter")
        assert (one.state, one.error) == ("error", "Cancelled")
        assert one.violations() == []
    finally:
        one.close()


@pytest.mark.parametrize("width", [360, pytest.param(1280, marks=pytest.mark.slow)])
def test_a_safetensors_model_is_saved_by_keyboard(browser, site, width):
    folder = "/?model=" + site.url + "/models/Tiny-1B/"
    one = Visit(browser, site, viewport={"width": width, "height": 740}).goto(folder)
    try:
        tab_to(one, "element.id === 'save-model'", "Shift+Tab")
        name, data = one.downloaded(lambda page: page.keyboard.press("Enter"))
        assert (name, data) == ("Tiny-1B.safetensors", b"one file")
        one.page.get_by_text("Saved, 8 B").wait_for()
        assert one.page.evaluate("document.activeElement.id") == "save-model"
        one.screenshot("save", width, 740)
        assert answered(one, "and after?")
        assert one.page.locator("#save-model").count() == 1
        assert one.violations() == []
    finally:
        one.close()


def test_focus_is_visible_on_every_control(shared):
    outlines = shared.page.evaluate(
        """() => [...document.querySelectorAll('button, a, textarea')]
          .filter((e) => e.checkVisibility()).map((e) => {
            e.focus({focusVisible: true});
            const {outlineStyle, outlineWidth} = getComputedStyle(e);
            return [e.id || e.textContent, outlineStyle !== 'none' && outlineWidth !== '0px'
              || e.closest('form:focus-within') !== null];
          }).filter(([, seen]) => !seen)"""
    )
    assert outlines == []


def test_look_inside_shows_tokens_heat_maps_times_and_memory(shared):
    page = shared.page
    page.get_by_role("button", name="Look inside").click()
    shared.by("prompt").fill("One two three")
    page.keyboard.press("Enter")
    page.get_by_text("cut into 3 pieces").wait_for()
    assert shared.by("tokens").locator("li").count() == 3
    assert page.locator("canvas").count() == 3
    assert "packed_gemm" in shared.by("kernels").inner_text()
    assert "31.2 MB" in shared.by("memory").inner_text()
    for text in ("Four words are here", "Two words"):
        shared.by("prompt").fill(text)
        page.keyboard.press("Enter")
    page.get_by_text("cut into 2 pieces").wait_for()
    page.get_by_role("button", name="Chat").click()


def test_looking_inside_leaves_a_running_answer_its_stop(chat):
    ask(chat, "slow please")
    chat.page.get_by_role("button", name="Look inside").click()
    assert not chat.by("stop").is_visible()
    chat.by("prompt").fill("One two")
    chat.page.keyboard.press("Enter")
    chat.page.get_by_text("cut into 2 pieces").wait_for()
    chat.page.get_by_role("button", name="Chat").click()
    chat.by("stop").click()
    chat.by("send").wait_for()
    assert "Stopped" in chat.page.locator(".message").last.inner_text()


def test_progress_tells_bytes_and_time_and_can_be_cancelled(shared):
    page = shared.page
    shared.by("model-picker").click()
    page.get_by_label("An address").fill(f"{shared.server.url}/large.gguf")
    page.keyboard.press("Enter")
    page.get_by_text(" left").nth(1).wait_for()
    text = shared.by("progress").inner_text()
    assert "MB of 98.0 MB" in text
    page.get_by_role("button", name="Cancel").click()
    assert shared.state == "error" and shared.error == "Cancelled"
    page.get_by_role("button", name="Choose another model").click()
    page.locator("#model-demo").click()
    shared.wait("ready")
    assert "You said" in answered(shared, "back").inner_text()


def test_a_broken_model_leaves_the_page_usable(shared):
    page = shared.page
    shared.by("model-picker").click()
    page.get_by_label("An address").fill(f"{shared.server.url}/broken.gguf")
    page.keyboard.press("Enter")
    shared.wait("error")
    assert shared.error == "FormatError"
    shared.by("model-picker").click()
    page.locator("#model-demo").click()
    shared.wait("ready")
