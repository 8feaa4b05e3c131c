// Integers that change from run to run (positions, symbolic sizes), by word.
@group(0) @binding(11) var<storage, read> live: array<i32>;
