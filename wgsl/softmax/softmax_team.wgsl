// needs: teams
alias Share = Stat;
fn share_of(i: u32, member: u32) -> Share { return fold_row(row_at(i), member, TEAM); }
fn joined(p: Share, q: Share) -> Share { return join(p, q); }
fn finish(i: u32, all: Share, member: u32) { write_row(row_at(i), all, member, TEAM); }
