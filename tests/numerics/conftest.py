"""How much the numerics suite draws."""


def pytest_addoption(parser):
    parser.addoption("--samples", type=int, default=25, help="graphs an operator, numerics suite")
    parser.addoption("--salt", type=int, default=0, help="another number draws other samples")
    parser.addoption("--update-numerics", action="store_true", help="write docs/numerics.md")
