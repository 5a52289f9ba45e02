//! What a RevertCommit is called.

/// The longest name: it is part of that of a branch.
const LONGEST: usize = 63;
/// How many names there are for one environment.
const MANY: i64 = 10_000;

/// The name of the `number`th revert of a branch.
pub(super) fn of(strategy: &str, branch: &str, number: i64) -> String {
    let end = format!("-{:04}", number.rem_euclid(MANY));
    let letter = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_lowercase(),
        false => '-',
    };
    let slug: String = branch.chars().map(letter).collect();
    let room = LONGEST.saturating_sub(strategy.len() + 1 + end.len());
    // The end of a branch tells more than its beginning.
    let slug = &slug[slug.len().saturating_sub(room)..];
    match slug.trim_matches('-') {
        "" => format!("{strategy}{end}"),
        slug => format!("{strategy}-{slug}{end}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_brought_back_and_fits() {
        assert_eq!(of("shop", "env/prod", 1_234_567), "shop-env-prod-4567");
        assert_eq!(of("shop", "Env_EU.1", 7), "shop-env-eu-1-0007");
        assert_eq!(of("shop", "___", 7), "shop-0007");
        let longest = of(&"s".repeat(50), "environments/production", 7);
        assert_eq!(longest, format!("{}-duction-0007", "s".repeat(50)));
        assert_eq!(longest.len(), LONGEST);
    }
}
