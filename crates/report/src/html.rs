//! HTML of the page around the pictures. The page loads nothing from elsewhere and can be printed; its script
//! sorts tables, shows tooltips and saves pictures, and everything can be read without it.

/// The style sheet of every page.
const PAGE_STYLE: &str = include_str!("page/page.css");
/// The style sheet of the pictures, which saved pictures contain as well. The colours of the series are the
/// published palette of Okabe and Ito (2008) for all kinds of colour vision, without yellow, which is pale on
/// white; darker or lighter where needed for the contrast with the ground.
const PICTURE_STYLE: &str = include_str!("page/picture.css");
const SCRIPT: &str = include_str!("page/page.js");

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// The number by which the table is sorted, where the text is none.
    pub key: Option<f64>,
    /// Class of the style sheet, beside `text` for cells that are flush left.
    pub class: &'static str,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// Escapes text for HTML and SVG, also inside quoted attributes.
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
    still_page(title, about, &format!("{body}<script>\n{SCRIPT}</script>\n"))
}

/// The same without a script.
pub fn still_page(title: &str, about: &str, body: &str) -> String {
    let (title, about) = (escape(title), escape(about));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{PAGE_STYLE}</style>\n\
         <style id=\"picture-style\">\n{PICTURE_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <p class=\"about\">{about}</p>\n{body}</body>\n</html>\n"
    )
}

/// A heading and its content; empty if the content is empty.
pub fn section(heading: &str, body: &str) -> String {
    if body.is_empty() { String::new() } else { format!("<h2>{}</h2>\n{body}", escape(heading)) }
}

/// A list of sentences; empty without one.
pub fn list(sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let items: String = sentences.iter().map(|text| format!("<li>{}</li>\n", escape(text))).collect();
    format!("<ul>\n{items}</ul>\n")
}

/// Pictures side by side; empty without pictures.
pub fn figures(pictures: &str) -> String {
    if pictures.is_empty() { String::new() } else { format!("<div class=\"figures\">\n{pictures}</div>\n") }
}

/// A picture with its title, which is text; `svg` is SVG.
pub fn figure(title: &str, svg: &str) -> String {
    format!("<figure><figcaption><span>{}</span></figcaption>\n{svg}</figure>\n", escape(title))
}

/// A picture as a file of its own: with its style sheet.
pub fn standalone(svg: &str) -> String {
    let end = svg.find('>').map_or(svg.len(), |at| at + 1);
    let (head, body) = svg.split_at(end);
    format!("{head}<style>{PICTURE_STYLE}</style>{body}")
}

/// A table; the first `left` columns are flush left.
pub fn table<C: Clone + Into<Cell>>(head: &[String], lines: &[Vec<C>], left: usize) -> String {
    let row = |tag: &str, cells: Vec<Cell>| {
        let cells = cells.into_iter().enumerate().map(|(index, cell)| {
            let class = [if index < left { "text" } else { "" }, cell.class].join(" ");
            let class = match class.trim() {
                "" => String::new(),
                class => format!(" class=\"{class}\""),
            };
            let key = cell.key.map_or(String::new(), |key| format!(" data-key=\"{key}\""));
            format!("<{tag}{class}{key}>{}</{tag}>", escape(&cell.text))
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let cells = |line: &Vec<C>| line.iter().cloned().map(Into::into).collect::<Vec<Cell>>();
    let body: String = lines.iter().map(|line| row("td", cells(line))).collect();
    let head = row("th", head.iter().map(|text| Cell::from(text.as_str())).collect());
    format!("<div class=\"scroll\"><table>\n<thead>{head}</thead>\n<tbody>\n{body}</tbody></table></div>\n")
}

/// Text of a file that is shown on a click.
pub fn folded(summary: &str, text: &str) -> String {
    format!("<details><summary>{}</summary><pre>{}</pre></details>\n", escape(summary), escape(text))
}
