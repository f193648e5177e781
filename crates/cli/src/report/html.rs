//! HTML of the page around the pictures. The page loads nothing from elsewhere and can be printed.

/// The style sheet of every page.
const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 1180px; margin: 2em auto; padding: 0 1.5em; }
h1 { font-size: 1.6em; margin-bottom: 0; } h2 { font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid #ddd; }
p.about { color: #555; margin-top: .3em; }
table { border-collapse: collapse; margin: .8em 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2em .9em .2em 0; text-align: right; border-bottom: 1px solid #e5e5e5; vertical-align: top; }
th { border-bottom: 1px solid #999; font-weight: 600; }
th.text, td.text { text-align: left; } td.wide { text-align: left; min-width: 16em; font-size: .87em; } td.values { text-align: left; white-space: nowrap; }
div.scroll { overflow-x: auto; }
div.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 1.2em; }
figure { margin: 0; break-inside: avoid; } figcaption { font-weight: 600; }
figure svg { width: 100%; height: auto; }
p.legend { margin: 0; font-size: .85em; } p.legend span { margin-right: 1em; white-space: nowrap; }
p.legend i { display: inline-block; width: 1.4em; height: .6em; margin-right: .4em; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
pre { background: #f6f6f6; padding: 1em; overflow-x: auto; }
.yes { color: #00684a; } .no { color: #a83f00; }
@media print { body { margin: 0; font-size: 11px; } div.figures { grid-template-columns: 1fr 1fr; } details { display: none; } }
";

/// Escapes text for HTML, also inside quoted attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// A whole page; `title` and `about` are text, `body` is HTML.
pub fn page(title: &str, about: &str, body: &str) -> String {
    let (title, about) = (escape(title), escape(about));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p class=\"about\">{about}</p>\n{body}</body>\n</html>\n"
    )
}

/// A heading and its content; empty if the content is empty.
pub fn section(heading: &str, body: &str) -> String {
    if body.is_empty() { String::new() } else { format!("<h2>{}</h2>\n{body}", escape(heading)) }
}

/// Pictures side by side; empty without pictures.
pub fn figures(pictures: &str) -> String {
    if pictures.is_empty() { String::new() } else { format!("<div class=\"figures\">\n{pictures}</div>\n") }
}

/// A table; the first `left` columns are flush left.
pub fn table(head: &[String], lines: &[Vec<String>], left: usize) -> String {
    let row = |tag: &str, cells: &[String]| {
        let cells = cells.iter().enumerate().map(|(index, cell)| {
            let class = if index < left { " class=\"text\"" } else { "" };
            format!("<{tag}{class}>{}</{tag}>", escape(cell))
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let body: String = lines.iter().map(|line| row("td", line)).collect();
    let head = row("th", head);
    format!("<div class=\"scroll\"><table>\n<thead>{head}</thead>\n<tbody>\n{body}</tbody></table></div>\n")
}

/// Text of a file that is shown on a click.
pub fn folded(summary: &str, text: &str) -> String {
    format!("<details><summary>{}</summary><pre>{}</pre></details>\n", escape(summary), escape(text))
}
