//! Patterns of branches.

/// Whether a branch is one of a pattern: `*` stands for any characters but `/`, and `**` for any. The work
/// grows with the length of both, multiplied, whatever they are.
pub(super) fn matches(pattern: &str, branch: &str) -> bool {
    let branch: Vec<char> = branch.chars().collect();
    // Which beginnings of the branch the pattern read so far stands for, by their lengths.
    let mut reached = vec![false; branch.len() + 1];
    if let Some(nothing) = reached.first_mut() {
        *nothing = true;
    }
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '*' {
            let is_deep = rest.next_if_eq(&'*').is_some();
            while rest.next_if_eq(&'*').is_some() {}
            extend(&mut reached, &branch, is_deep);
        } else {
            advance(&mut reached, &branch, c);
        }
    }
    reached.last().copied().unwrap_or_default()
}

/// A star may stand for more characters.
fn extend(reached: &mut [bool], branch: &[char], is_deep: bool) {
    let mut before = false;
    for (place, here) in reached.iter_mut().enumerate() {
        let last = place.checked_sub(1).and_then(|last| branch.get(last));
        let goes_on = last.is_some_and(|last| is_deep || *last != '/');
        *here |= before && goes_on;
        before = *here;
    }
}

/// A character stands for itself.
fn advance(reached: &mut [bool], branch: &[char], c: char) {
    let mut before = false;
    for (place, here) in reached.iter_mut().enumerate() {
        let last = place.checked_sub(1).and_then(|last| branch.get(last));
        before = std::mem::replace(here, before && last == Some(&c));
    }
}
