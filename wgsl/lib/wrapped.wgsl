// An index as a row; one that is out of range comes out as size or more.
fn wrapped(value: i32, size: i32, wrap: bool) -> u32 {
    if (wrap && value < 0 && value >= -size) {
        return u32(value + size);
    }
    return u32(value);
}
