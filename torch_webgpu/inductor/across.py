"""Functions that join the accumulators of a workgroup's lanes.

`types` are the fields of an accumulator, `combine` the statements that make fields x_<field> of a_<field> and
b_<field>. RESULT stands for what is returned.
"""

from __future__ import annotations


def by_subgroup(types: dict[str, str], combine: str, function: str, workgroup: int) -> str:
    """A workgroup that is one subgroup needs no memory: each lane combines with those 4, 2 and 1 away."""
    lines = "".join(f"  var x_{f}_ = v_{f};\n" for f in types)
    steps = ""
    distance = workgroup // 2
    while distance:
        get = "".join(
            f"    let a_{f} = x_{f}_;\n"
            + (f"    let b_{f} = subgroupShuffleXor(u32(x_{f}_), {distance}u) != 0u;\n" if t == "bool"
               else f"    let b_{f} = subgroupShuffleXor(x_{f}_, {distance}u);\n")
            for f, t in types.items()
        )  # fmt: skip
        steps += f"  {{\n{get}    {combine}\n" + "".join(f"    x_{f}_ = x_{f};\n" for f in types) + "  }\n"
        distance //= 2
    last = "".join(f"  let x_{f} = x_{f}_;\n" for f in types)
    return f"{lines}{steps}{last}  return RESULT;\n"


def shared(types: dict[str, str], function: str, workgroup: int) -> str:
    return "".join(
        f"var<workgroup> {function}_{f}: array<{'u32' if t == 'bool' else t}, {workgroup}>;\n" for f, t in types.items()
    )


def by_memory(types: dict[str, str], combine: str, function: str, workgroup: int) -> str:
    def put(field: str, value: str) -> str:
        return f"{function}_{field}[lane] = {f'u32({value})' if types[field] == 'bool' else value};"

    def get(field: str, at: str) -> str:
        return f"({function}_{field}[{at}] != 0u)" if types[field] == "bool" else f"{function}_{field}[{at}]"

    first = "".join(f"  {put(f, f'v_{f}')}\n" for f in types)
    pairs = "".join(f"      let a_{f} = {get(f, 'lane')};\n      let b_{f} = {get(f, 'lane + s')};\n" for f in types)
    puts = "".join(f"      {put(f, f'x_{f}')}\n" for f in types)
    last = "".join(f"  let x_{f} = {get(f, '0')};\n" for f in types)
    return (f"{first}  workgroupBarrier();\n  for (var s = {workgroup // 2}u; s > 0u; s >>= 1u) {{\n"
            f"    if (lane < s) {{\n{pairs}      {combine}\n{puts}    }}\n    workgroupBarrier();\n  }}\n"
            f"{last}  workgroupBarrier();\n  return RESULT;\n")  # fmt: skip
