// One linear index over a folded 2-D grid of workgroups: guard it with the element count.
override wg_size: u32 = 64u;

fn linear_index(id: vec3<u32>, groups: vec3<u32>) -> u32 {
    return id.x + id.y * groups.x * wg_size;
}

// The same for kernels that give a workgroup to each row, tile or block.
fn group_index(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.x + group.y * groups.x;
}
