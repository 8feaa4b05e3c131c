"""A page of an app that uses client.js."""

from browser.pages import Visit
from webgpu_py.host.server import Server

EMPTY = b"<!doctype html><title>an app</title>"


def served(browser, mounts, settings):
    with Server(mounts, headers=dict(settings.headers)) as running:
        running.pages["/app.html"] = EMPTY
        one = Visit(browser, running)
        one.page.goto(running.url + "/app.html")
        yield one
        one.close()


def run(visit, body, argument=None):
    code = "async (argument) => { const client = await import('/client.js');" + body + "}"
    return visit.page.evaluate(code, argument)
