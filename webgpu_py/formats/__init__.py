"""File formats: bytes in, records out; no GPU and no operators.

`pte`, `ptd` and `vk_graph` read ExecuTorch's programs, `gguf` and `safetensors` the headers of
model files: names, types, dimensions and places of tensors, whose bytes stay where they are.
Files may be damaged or hostile: all end in FormatError, soon and in bounded memory.
"""
