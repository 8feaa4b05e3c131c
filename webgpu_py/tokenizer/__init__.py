"""Text to token ids and back: byte-level BPE and SentencePiece-style BPE, and chat templates.

`tokenizer_from_gguf(metadata)` and `tokenizer_from_json(tokenizer_json, tokenizer_config)` build a
`Tokenizer`; `template.ChatTemplate` turns messages into a prompt.
"""

from .base import Tokenizer
from .from_gguf import tokenizer_from_gguf
from .from_json import tokenizer_from_json

__all__ = ["Tokenizer", "tokenizer_from_gguf", "tokenizer_from_json"]
