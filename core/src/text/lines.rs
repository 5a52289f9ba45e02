//! Lists as people write them into a ConfigMap: one entry in each line, with comments.

/// The entries of a text, each with the number of its line. A `#` begins a comment only at the
/// beginning of a line or after a space, because the name of a branch may have a `#`.
pub(crate) fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .map(|(number, line)| (number, without_comment(line).trim()))
        .filter(|(_, entry)| !entry.is_empty())
}

fn without_comment(line: &str) -> &str {
    let begins = |(at, _): &(usize, &str)| {
        line[..*at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace)
    };
    let comment = line.match_indices('#').find(begins);
    comment.map_or(line, |(at, _)| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_none_of_the_entries() {
        let text = "# releases\n\n v1.4.* # of May\nfix#12\n\t#\nmain  #x#y\n";
        let found: Vec<_> = entries(text).collect();
        assert_eq!(found, [(3, "v1.4.*"), (4, "fix#12"), (6, "main")]);
    }
}
