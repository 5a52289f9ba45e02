//! A form with a file in it (RFC 7578).

use std::fmt::Write;

/// A form, as it is sent.
pub(super) struct Form {
    pub(super) media_type: String,
    pub(super) body: Vec<u8>,
}

impl Form {
    /// Fields with their texts, and one with the bytes of a file.
    pub(super) fn new(fields: &[(&str, &str)], (name, bytes): (&str, &[u8])) -> Self {
        let texts = fields.iter().map(|(_, text)| text.as_bytes());
        let boundary = boundary(&texts.chain([bytes]));
        let mut head = String::new();
        for (name, text) in fields {
            // Writing to a text never fails.
            let _ = write!(
                head,
                "--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n"
            );
        }
        let _ = write!(
            head,
            "--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\n\
             content-type: application/octet-stream\r\n\r\n"
        );
        let end = format!("\r\n--{boundary}--\r\n");
        Self {
            media_type: format!("multipart/form-data; boundary={boundary}"),
            body: [head.as_bytes(), bytes, end.as_bytes()].concat(),
        }
    }
}

/// A text that is in none of the parts.
fn boundary<'a>(parts: &(impl Iterator<Item = &'a [u8]> + Clone)) -> String {
    let is_in = |part: &[u8], text: &[u8]| part.windows(text.len()).any(|window| window == text);
    let free = |text: &String| !parts.clone().any(|part| is_in(part, text.as_bytes()));
    let texts = (0_u64..).map(|n| format!("sluice-part-{n}"));
    texts.into_iter().find(free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_between_boundaries() {
        let form = Form::new(&[("branch", "next")], ("content", b"\xef\xbb\xbfa: 1\r\n"));
        assert_eq!(
            form.media_type,
            "multipart/form-data; boundary=sluice-part-0"
        );
        assert_eq!(
            form.body,
            b"--sluice-part-0\r\n\
              content-disposition: form-data; name=\"branch\"\r\n\r\nnext\r\n\
              --sluice-part-0\r\n\
              content-disposition: form-data; name=\"content\"; filename=\"content\"\r\n\
              content-type: application/octet-stream\r\n\r\n\
              \xef\xbb\xbfa: 1\r\n\r\n--sluice-part-0--\r\n"
        );
    }

    #[test]
    fn a_boundary_is_in_no_part() {
        let form = Form::new(
            &[("message", "sluice-part-1")],
            ("content", b"sluice-part-0"),
        );
        assert_eq!(
            form.media_type,
            "multipart/form-data; boundary=sluice-part-2"
        );
    }
}
