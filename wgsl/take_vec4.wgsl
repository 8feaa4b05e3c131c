//! lib: grid, axes, fault, wrapped, take
// The same where every run is a whole number of 16 bytes.
alias Unit = vec4<u32>;
