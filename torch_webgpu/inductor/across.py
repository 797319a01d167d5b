"""Functions that join the accumulators of a workgroup's lanes.

`types` are the fields of an accumulator, `combine` the statements that make fields x_<field> of a_<field> and
b_<field>. RESULT stands for what is returned.
"""

from __future__ import annotations

SIDE = 64  # lanes of a line, where lines share the rows of the same columns


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
    first = "".join(f"  {_put(types, function, f, f'v_{f}')}\n" for f in types)
    pairs = "".join(
        f"      let a_{f} = {_get(types, function, f, 'lane')};\n"
        f"      let b_{f} = {_get(types, function, f, 'lane + s')};\n"
        for f in types
    )
    puts = "".join(f"      {_put(types, function, f, f'x_{f}')}\n" for f in types)
    last = "".join(f"  let x_{f} = {_get(types, function, f, '0')};\n" for f in types)
    return (f"{first}  workgroupBarrier();\n  for (var s = {workgroup // 2}u; s > 0u; s >>= 1u) {{\n"
            f"    if (lane < s) {{\n{pairs}      {combine}\n{puts}    }}\n    workgroupBarrier();\n  }}\n"
            f"{last}  workgroupBarrier();\n  return RESULT;\n")  # fmt: skip


def by_lines(types: dict[str, str], combine: str, function: str, workgroup: int) -> str:
    """Each lane combines those of its column: one lane of each line."""
    first = "".join(f"  {_put(types, function, f, f'v_{f}')}\n" for f in types)
    start = "".join(f"  var x_{f}_ = {_get(types, function, f, f'lane % {SIDE}u')};\n" for f in types)
    pairs = "".join(f"    let a_{f} = x_{f}_;\n    let b_{f} = {_get(types, function, f, 'other')};\n" for f in types)
    steps = "".join(f"    x_{f}_ = x_{f};\n" for f in types)
    last = "".join(f"  let x_{f} = x_{f}_;\n" for f in types)
    loop = f"for (var other = lane % {SIDE}u + {SIDE}u; other < {workgroup}u; other += {SIDE}u)"
    return (f"{first}  workgroupBarrier();\n{start}  {loop} {{\n{pairs}    {combine}\n{steps}  }}\n"
            f"{last}  workgroupBarrier();\n  return RESULT;\n")  # fmt: skip


def _put(types: dict[str, str], function: str, field: str, value: str) -> str:
    return f"{function}_{field}[lane] = {f'u32({value})' if types[field] == 'bool' else value};"


def _get(types: dict[str, str], function: str, field: str, at: str) -> str:
    return f"({function}_{field}[{at}] != 0u)" if types[field] == "bool" else f"{function}_{field}[{at}]"
