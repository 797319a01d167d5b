// Texts that rows of several families share.
#pragma once

// The first of equal values wins, and NaN wins over everything.
#define FIRST_BEST(better)                                                      \
  "if (p.y == 0xffffffffu) { return q; } if (q.y == 0xffffffffu) { return p; }" \
  "let nan_p = is_nan(p.x); let nan_q = is_nan(q.x);"                           \
  "let tie = (nan_p && nan_q) || eq(p.x, q.x);"                                 \
  "if ((tie && q.y < p.y) || (!tie && !nan_p && (nan_q || " better "(q.x, p.x)))) { return q; } return p;"

// Mean, sum of squared distances from it and size of a set, with library "statistics": identity, map and combine.
#define SPREAD "0.0, 0.0, 0.0", "a, own_spread(a), 1.0", "return joined_spread(p, q);"
