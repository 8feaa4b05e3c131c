"""2,000 strings for comparing tokenizers, the same on every Python: words of many scripts, digits,
contractions, runs of white space, code, emoji, composed and decomposed accents."""

import random

COUNT = 2000
ATOMS = """
the of and to in is you that it he was for on are as with his they I at be this have
Model models MODEL GPU WebGPU iPhone McDonald eXtreme HELLO tokenization carefully
don't can't I'm you've we'll they'd she's O'Neil 'S 'T 'LL 'Re rock'n'roll ''
0 1 7 10 42 123 1234 2024 3.14159 1,000,000 0x1F ½ ² Ⅷ ٣ १२३ ５
été naïve Ångström garçon façade über Straße ñandú coöperate
e\u0301te\u0301 u\u0308ber n\u0303 A\u030angstrom \u1100\u1161\u11a8 q\u0307\u0323
Привет мир Ελληνικά עברית العربية हिन्दी ไทย ქართული
日本語 漢字かな交じり文 中文 한국어
😀 👍🏽 👩‍👩‍👧‍👦 🇫🇷 🏳️‍🌈 ☃ → € „ “ ” … — \u200b \ufeff
{ } () [0] == != -> // /* */ # $x \\n <br> @user
def f(x): return a_b fooBar http://a.io/b?c=d&e a@b.co C++ 50% ...
! ? . , ; : - ' " ` ~ ^ | & + _ ?! !!!
xxxxxxxxxxxxxxxxx abababababababab ==================== ------------------- 00000000000
""".split()
SPACES = ("", " ", " ", " ", " ", "  ", "   ", " " * 9)
GAPS = (*SPACES, "\n", "\n\n", "\r\n", "\t", " \n ", "\n  ", "\t\t")
RARE_GAPS = ("\u00a0", "\u3000", "\u2028", "\x0b", "\x85", "\n \n\n  ")


def strings():
    """The same list each time; only `Random.random` is used, which no Python version changes."""
    draw = random.Random(20240131).random

    def one_of(choices):
        return choices[int(draw() * len(choices))]

    made = ["", " ", "  ", "\n", "a", " a", "a ", "é", "日", "👍🏽"]
    while len(made) < COUNT:
        parts = []
        for _ in range(1 + int(draw() * draw() * 24)):
            parts.append(one_of(ATOMS))
            parts.append(one_of(RARE_GAPS) if draw() < 0.02 else one_of(GAPS))
        text = "".join(parts)
        made.append(text if draw() < 0.3 else text.strip(" "))
    return made
