// The session's fault word: the first bad index wins and is read with the outputs.
// Word 0: 1 + node, 1: flat position, 2: the offending value.
@group(0) @binding(12) var<storage, read_write> fault: array<atomic<u32>, 4>;

fn raise_fault(node: u32, position: u32, value: u32) {
    if (atomicCompareExchangeWeak(&fault[0], 0u, node + 1u).exchanged) {
        atomicStore(&fault[1], position);
        atomicStore(&fault[2], value);
    }
}
