//! Files, and what becomes of them.

use rstest::rstest;

use super::*;

mod shapes;

const COMMIT: &str = "4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

const PROD: Promotion<'_> = Promotion {
    namespace: "flux-system",
    pipeline: "podinfo",
    environment: "prod",
};

/// With `§` for the marker of prod, and `§commit` for one with a fourth part.
fn file(text: &str) -> String {
    let mut parts = text.split('§');
    let mut file = parts.next().unwrap().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphabetic());
        let (word, rest) = part.split_at(end.unwrap_or(part.len()));
        let colon = if word.is_empty() { "" } else { ":" };
        file.push_str(&format!(
            "# {{\"$promotion\": \"{PROD}{colon}{word}\"}}{rest}"
        ));
    }
    file
}

fn edit_to(text: &str, revision: &str) -> Result<Edited, Mistake> {
    let revision = Revision::parse(&revision.replace("{commit}", COMMIT)).unwrap();
    edited(file(text).as_bytes(), &PROD, &revision)
}

#[rstest]
#[case::plain("version: 6.1.0 §\n", "version: 6.1.6 §\n")]
#[case::double("version: \"6.1.0\" §\n", "version: \"6.1.6\" §\n")]
#[case::single("version: '6.1.0'\t §\n", "version: '6.1.6'\t §\n")]
#[case::with_escapes("version: \"6.1\\x2e0\" §\n", "version: \"6.1.6\" §\n")]
#[case::no_last_newline("version: 6.1.0 §", "version: 6.1.6 §")]
#[case::crlf(
    "a: b\r\nversion: 6.1.0 §\r\nc: d\r\n",
    "a: b\r\nversion: 6.1.6 §\r\nc: d\r\n"
)]
#[case::old_macs("a: b\rversion: 6.1.0 §\rc: d", "a: b\rversion: 6.1.6 §\rc: d")]
#[case::bom("\u{feff}version: 6.1.0 §\n", "\u{feff}version: 6.1.6 §\n")]
#[case::letters("ü: 'ä' # ö\nversion: 6.1.0 §\n", "ü: 'ä' # ö\nversion: 6.1.6 §\n")]
#[case::documents(
    "# a\n---\nv: 6.1.0 §\n...\n---\n\n- {a: b}\n---\nv: '6.1.0' §\n",
    "# a\n---\nv: 6.1.6 §\n...\n---\n\n- {a: b}\n---\nv: '6.1.6' §\n"
)]
#[case::directive("%YAML 1.1\n---\nv: 6.1.0 §\n", "%YAML 1.1\n---\nv: 6.1.6 §\n")]
#[case::root("--- 6.1.0 §\n", "--- 6.1.6 §\n")]
#[case::item("- a\n-   6.1.0 §\n", "- a\n-   6.1.6 §\n")]
#[case::nested("- - - a: 6.1.0 §\n", "- - - a: 6.1.6 §\n")]
#[case::anchor("v: &v 6.1.0 §\nw: *v\n", "v: &v 6.1.6 §\nw: *v\n")]
#[case::tag("v: !!str 6.1.0 §\n", "v: !!str 6.1.6 §\n")]
#[case::flow("{a: [b, c],\n v: 6.1.0 §\n}\n", "{a: [b, c],\n v: 6.1.6 §\n}\n")]
#[case::flow_on_one_line("- {v: 6.1.0} §\n", "- {v: 6.1.6} §\n")]
#[case::json(
    "{\n  \"v\": \"6.1.0\", §\n  \"w\": 1\n}",
    "{\n  \"v\": \"6.1.6\", §\n  \"w\": 1\n}"
)]
#[case::over_lines("v: \"6.1\n   .0\" §\nw: 1\n", "v: \"6.1.6\" §\nw: 1\n")]
#[case::explicit_key("? v\n: 6.1.0 §\n", "? v\n: 6.1.6 §\n")]
#[case::only_one_of_two("v: 6.1.6 §\nw: '6.1.0' §\n", "v: 6.1.6 §\nw: '6.1.6' §\n")]
#[case::the_same_elsewhere("v: 6.1.0\nw: 6.1.0 §\n# 6.1.0\n", "v: 6.1.0\nw: 6.1.6 §\n# 6.1.0\n")]
#[case::other_markers(
    "v: 6.1.0 # {\"$promotion\": \"flux-system:podinfo:staging\"}\n\
     w: 6.1.0 # {\"$promotion\": \"flux-system:podinfo:staging:colour\"}\n\
     x: 6.1.0 # {\"$imagepolicy\": \"flux-system:podinfo:tag\"}\n\
     y: 6.1.0 # {\"$imagepolicy\": \"$promotion\"}\n\
     z: 6.1.0 # $promotion: \"flux-system:podinfo:prod\"\n\
     # v: 6.1.0 # {\"$promotion\": \"flux-system:podinfo:prod\"}\n\
     text: |\n  v: 6.1.0 # {\"$promotion\": \"flux-system:podinfo:prod\"}\n\
     ours: 6.1.0 §\n",
    "v: 6.1.0 # {\"$promotion\": \"flux-system:podinfo:staging\"}\n\
     w: 6.1.0 # {\"$promotion\": \"flux-system:podinfo:staging:colour\"}\n\
     x: 6.1.0 # {\"$imagepolicy\": \"flux-system:podinfo:tag\"}\n\
     y: 6.1.0 # {\"$imagepolicy\": \"$promotion\"}\n\
     z: 6.1.0 # $promotion: \"flux-system:podinfo:prod\"\n\
     # v: 6.1.0 # {\"$promotion\": \"flux-system:podinfo:prod\"}\n\
     text: |\n  v: 6.1.0 # {\"$promotion\": \"flux-system:podinfo:prod\"}\n\
     ours: 6.1.6 §\n"
)]
#[case::two_markers_in_one(
    "v: 6.1.0 #{\"$imagepolicy\":\"a:b\",\"$promotion\":\"flux-system:podinfo:prod\"}\n",
    "v: 6.1.6 #{\"$imagepolicy\":\"a:b\",\"$promotion\":\"flux-system:podinfo:prod\"}\n"
)]
fn the_value_changes_and_nothing_else(#[case] before: &str, #[case] after: &str) {
    assert_eq!(edit_to(before, "6.1.6"), Ok(Edited::Changed(file(after))));
    assert_eq!(edit_to(after, "6.1.6"), Ok(Edited::AlreadyThere));
}

#[rstest]
#[case::float("v: 1.9.0 §\n", "1.10", "v: \"1.10\" §\n")]
#[case::float_in_its_quotes("v: '1.9' §\n", "1.10", "v: '1.10' §\n")]
#[case::float_that_stands_there("v: 1.10 §\n", "1.10", "v: \"1.10\" §\n")]
#[case::truth("v: a §\n", "true", "v: \"true\" §\n")]
#[case::hexadecimal("v: a §\n", "0x1", "v: \"0x1\" §\n")]
#[case::nothing("v: a §\n", "null", "v: \"null\" §\n")]
#[case::date("v: a §\n", "2026-11-20", "v: \"2026-11-20\" §\n")]
#[case::quotes("v: a §\n", "a\"b\\c", "v: \"a\\\"b\\\\c\" §\n")]
#[case::single_quotes("v: 'a' §\n", "it's", "v: 'it''s' §\n")]
#[case::flow("[v: a §\n]\n", "b],[", "[v: \"b],[\" §\n]\n")]
fn what_is_no_text_is_quoted(#[case] before: &str, #[case] revision: &str, #[case] after: &str) {
    assert_eq!(edit_to(before, revision), Ok(Edited::Changed(file(after))));
    assert_eq!(edit_to(after, revision), Ok(Edited::AlreadyThere));
}

#[rstest]
#[case::whole("v: a §\n", "main@sha1:{commit}")]
#[case::commit("v: a §commit\n", "{commit}")]
#[case::digest("v: a §digest\n", "sha1:{commit}")]
#[case::name("v: a §ref\n", "main")]
fn a_fourth_part_names_what_is_written(#[case] before: &str, #[case] value: &str) {
    let after = before.replace("a ", &format!("{} ", value.replace("{commit}", COMMIT)));
    let made = edit_to(before, "main@sha1:{commit}");
    assert_eq!(made, Ok(Edited::Changed(file(&after))));
}

#[test]
fn a_version_has_no_v_and_a_ref_is_as_it_is_called() {
    let made = edit_to("v: a §version\nw: a §ref\n", "v6.1.6+3@sha1:{commit}");
    let after = file("v: 6.1.6+3 §version\nw: v6.1.6+3 §ref\n");
    assert_eq!(made, Ok(Edited::Changed(after)));
}

#[rstest]
#[case::none(
    "v: 6.1.0\n",
    "no value is marked for this promotion; write # {\"$promotion\": \"flux-system:podinfo:prod\"} behind"
)]
#[case::empty("", "no value is marked")]
#[case::of_another(
    "v: 6.1.0 # {\"$promotion\": \"flux-system:podinfo:dev\"}\n",
    "no value is marked"
)]
#[case::in_a_text("v: |\n  w: 6.1.0 §\n", "no value is marked")]
#[case::literal(
    "a: b\nv: | §\n  6.1.0\n",
    "line 2: a marker has no value on its line; write the value before"
)]
#[case::folded("v: >- §\n  6.1.0\n", "line 1: a marker has no value on its line")]
#[case::behind_a_block("v: |\n  6.1.0\n§\n", "line 3: a marker has no value on its line")]
#[case::above("§\nv: 6.1.0\n", "line 1: a marker has no value")]
#[case::below("v: 6.1.0\n\n  §\n", "line 3: a marker has no value")]
#[case::on_the_line_before("v: §\n  6.1.0\n", "line 1: a marker has no value")]
#[case::of_nothing("v: §\nw: 1\n", "line 1: a marker has no value")]
#[case::of_an_anchor("v: &a §\nw: *a\n", "line 1: a marker has no value")]
#[case::of_a_key("? 6.1.0 §\n: a\n", "line 1: a marker has no value")]
#[case::of_a_collection("v: [] §\n", "line 1: a marker has no value")]
#[case::template_of_helm("v: {{ .Values.tag }} §\n", "line 1: a marker has no value")]
#[case::several(
    "a: b\nv: [6.1.0, 6.1.1] §\n",
    "line 2: a marker has several values on its line; write each"
)]
#[case::alias(
    "a: &a 6.1.0\nb: *a §\n",
    "line 2: a marker is behind an alias; move it"
)]
#[case::tag("a: !!float 6.1 §\n", "line 1: a marked value has a tag; remove")]
#[case::own_tag("a: !tag 6.1 §\n", "line 1: a marked value has a tag; remove")]
#[case::fourth_part(
    "a: b\nv: 6.1.0 §colour\n",
    "line 2: a marker asks for `colour` of the revision; write commit, digest"
)]
#[case::no_part(
    "v: 6.1.0 §commit\n",
    "line 1: a marker asks for the commit of the revision, and 6.1.6 has none; write another"
)]
#[case::broken_json(
    "a: b\nv: 6.1.0 # {\"$promotion\": \"flux-system:podinfo:prod\"\n",
    "line 2: a marker cannot be read: its JSON is broken (EOF while parsing an object); write it as # {"
)]
#[case::words_behind(
    "v: 6.1.0 # {\"$promotion\": \"flux-system:podinfo:prod\"} keep\n",
    "line 1: a marker cannot be read: its JSON is broken (trailing characters);"
)]
#[case::no_text(
    "v: 6.1.0 # {\"$promotion\": 1}\n",
    "line 1: a marker cannot be read: `$promotion` is no text;"
)]
#[case::two_parts(
    "v: 6.1.0 # {\"$promotion\": \"podinfo:prod\"}\n",
    "line 1: a marker cannot be read: `podinfo:prod` has neither three parts nor four;"
)]
#[case::broken_yaml(
    "a: b\nv: \"6.1.0 §\n",
    "line 2: it is not YAML: invalid trailing content after double-quoted scalar; correct it"
)]
#[case::broken_far_below("v: 6.1.0 §\na: b\nc: [\n", "line 3: it is not YAML: ")]
#[case::unknown_alias(
    "v: 6.1.0 §\n---\na: *b\n",
    "line 3: it is not YAML: while parsing node, found unknown anchor; correct it"
)]
fn what_cannot_be_done_is_told(#[case] text: &str, #[case] expected: &str) {
    let mistake = edit_to(text, "6.1.6").unwrap_err().to_string();
    assert!(mistake.starts_with(expected), "{mistake}");
}

#[test]
fn what_is_no_text_is_refused_with_its_line() {
    let revision = Revision::parse("6.1.6").unwrap();
    let told = |file: &[u8]| edited(file, &PROD, &revision).unwrap_err().to_string();
    let expected = "line 2: it is not UTF-8; save the file as UTF-8";
    assert_eq!(told(b"a: b\nv: \xff\xfe\n"), expected);
}

/// A file of values has more comments than anything else.
#[test]
fn there_is_no_limit_on_comments() {
    let comments = "# more\n".repeat(2_000);
    let made = edit_to(&format!("a:\n{comments}  v: 6.1.0 §\n{comments}"), "6.1.6");
    let after = file(&format!("a:\n{comments}  v: 6.1.6 §\n{comments}"));
    assert_eq!(made, Ok(Edited::Changed(after)));
}

/// The guard itself: nothing above makes it refuse.
#[rstest]
#[case::as_meant("v: 6.1.6 §\nw: a\n", true)]
#[case::another_value("v: 6.1.7 §\nw: a\n", false)]
#[case::other_quotes("v: '6.1.6' §\nw: a\n", false)]
#[case::more_changed("v: 6.1.6 §\nw: b\n", false)]
#[case::more_added("v: 6.1.6 §\nw: a\nx: a\n", false)]
#[case::less("v: 6.1.6 §\n", false)]
#[case::a_comment_swallowed("v: 6.1.6\nw: a\n", false)]
#[case::broken("v: [6.1.6 §\nw: a\n", false)]
fn what_was_written_has_to_read_as_it_was_meant(#[case] text: &str, #[case] expected: bool) {
    let before = file("v: 6.1.0 §\nw: a\n");
    let before = parsed(&before).unwrap();
    let values = values(&before);
    let revision = Revision::parse("6.1.6").unwrap();
    let edits = edits(&before, &values, &PROD, &revision).unwrap();
    assert_eq!(is_read_as(&before, &edits, &file(text)), expected);
}

#[test]
fn a_file_is_read_up_to_a_bound() {
    let line = "version: 6.1.0 §\n";
    let with =
        |more: usize, item: &str| edit_to(&format!("{line}more:\n{}", item.repeat(more)), "6.1.6");
    // Most of its length is one comment.
    let long = LONGEST_FILE - file(line).len() - "more:\n#\n".len();
    let comment = |length: usize| with(1, &format!("#{}\n", "x".repeat(length)));
    assert!(matches!(comment(long), Ok(Edited::Changed(_))));
    let why = comment(long + 1).unwrap_err();
    assert_eq!(
        why.to_string(),
        "it is longer than 256 KiB; move the marked values into a smaller file"
    );
    assert!(matches!(with(19_000, "- a\n"), Ok(Edited::Changed(_))));
    assert_eq!(with(20_000, "- a\n"), Err(Mistake::TooMuch(20_000)));
}
