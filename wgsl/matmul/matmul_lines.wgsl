// Where four lines of an operand begin, in the unit of its loads, how far apart two steps are, and how many there are.
struct Lines { at: vec4<u32>, by: u32, depth: u32, }
