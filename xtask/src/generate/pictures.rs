//! The pictures of the docs that are drawn from here: SVG, read in light and in dark pages.
//!
//! What comes in: the sources of the workspace. What goes out: a file for each picture.

use std::fmt::Write;

use anyhow::Result;

use super::Generated;

mod decision;
mod gated_source;
mod house;

/// All of them.
pub(super) fn files() -> Result<Vec<Generated>> {
    Ok(vec![
        gated_source::file(),
        house::file()?,
        decision::file()?,
    ])
}

/// A picture that grows downwards while it is drawn.
struct Canvas {
    width: u32,
    body: String,
}

impl Canvas {
    fn new(width: u32) -> Self {
        let body = String::new();
        Self { width, body }
    }

    /// An element, as it is written in SVG.
    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.body, "{element}");
    }

    /// A line of text that begins at `x`, on the line `y`.
    fn text(&mut self, class: &str, (x, y): (u32, u32), text: &str) {
        let text = escaped(text);
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
        ));
    }

    /// A box of `width` and `height`, whose upper left corner is at `x` and `y`.
    fn rect(&mut self, class: &str, (x, y): (u32, u32), (width, height): (u32, u32)) {
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
    }

    /// The whole file at `path`: `title` and `description` are for people who cannot see it.
    fn finish(
        self,
        path: &str,
        height: u32,
        style: &str,
        (title, description): (&str, &str),
    ) -> Generated {
        let Self { width, body } = self;
        let (title, description) = (escaped(title), escaped(description));
        let content = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" \
             aria-labelledby=\"title description\">\n\
             <!-- Made by `cargo xtask generate`: change the code instead. -->\n\
             <title id=\"title\">{title}</title>\n<desc id=\"description\">{description}</desc>\n\
             <style>\n{STYLE}{style}</style>\n\
             <defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" \
             markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0 0L10 5L0 10z\" \
             fill=\"#6b7280\"/></marker></defs>\n{body}</svg>\n"
        );
        let path = path.into();
        Generated { path, content }
    }
}

/// What all pictures share.
const STYLE: &str = "\
text { font: 13px system-ui, sans-serif; fill: #1f2937 }
.small { font-size: 11px; fill: #6b7280 }
.name { font-weight: 600; font-size: 14px }
rect { stroke-width: 1.5; rx: 8 }
.flux { fill: #eff6ff; stroke: #3b82f6 }
.ours { fill: #ecfdf5; stroke: #059669 }
line, path.way { fill: none; stroke: #6b7280; stroke-width: 1.5; marker-end: url(#head) }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb } .small { fill: #9ca3af }
  .flux { fill: #172554 } .ours { fill: #022c22 }
}
";

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// The first sentence of the comment that a module of Rust begins with, without its markup.
fn first_sentence(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let paragraph: Vec<_> = lines
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let text = paragraph.join(" ").replace('`', "");
    let end = text.find(". ").unwrap_or(text.trim_end_matches('.').len());
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_of_a_module_is_found() {
        let source =
            "//! `cargo xtask ci`: every check\n//! at once. Then more.\n//!\n//! Not this.\n";
        assert_eq!(
            first_sentence(source),
            "cargo xtask ci: every check at once"
        );
        assert_eq!(first_sentence("//! One line.\nuse a;"), "One line");
        assert_eq!(first_sentence("use a;"), "");
    }

    #[test]
    fn a_picture_is_well_formed_whatever_its_texts_are() {
        let mut canvas = Canvas::new(10);
        canvas.text("name", (1, 2), "a < b & \"c\"");
        let file = canvas.finish("p.svg", 5, "", ("<t>", "&d"));
        assert!(
            file.content
                .contains(">a &lt; b &amp; &quot;c&quot;</text>")
        );
        assert!(file.content.contains(">&lt;t&gt;</title>"));
    }
}
