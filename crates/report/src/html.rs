//! HTML of the page around the pictures. The page loads nothing from elsewhere and can be printed; its script
//! sorts tables, shows tooltips and saves pictures, and everything can be read without it.

/// The style sheet of every page.
const PAGE_STYLE: &str = include_str!("page/page.css");
/// The style sheet of the pictures, which saved pictures contain as well. The colours of the series are the
/// published palette of Okabe and Ito (2008) for all kinds of colour vision, without yellow, which is pale on
/// white; darker or lighter where needed for the contrast with the ground.
const PICTURE_STYLE: &str = include_str!("page/picture.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Characters of a line of a table at most. Derived: 1200 px by the 9.6 px that a digit of 15 px has in
/// DejaVu Sans, the widest of the usual fonts; a page is 1280 px wide.
const MAX_WIDTH: usize = 124;
/// Characters of a column of sentences at least. Derived: 15 em, as in `page/page.css`.
const WIDE: usize = 25;

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

/// A section that answers: sentences, and up to three of `pictures`, which are taken from them.
pub fn answer(sentences: &[String], pictures: &mut Vec<String>) -> String {
    let first: String = pictures.drain(..pictures.len().min(3)).collect();
    list(sentences) + &figures(&first)
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

/// A table; the first `left` columns are flush left. A table that is wider than a page becomes several, each
/// with the first columns.
pub fn table<C: Clone + Into<Cell>>(head: &[String], lines: &[Vec<C>], left: usize) -> String {
    let lines: Vec<Vec<Cell>> =
        lines.iter().map(|line| line.iter().cloned().map(Into::into).collect()).collect();
    blocks(head, &lines, left).iter().map(|columns| block(head, &lines, left, columns)).collect()
}

/// The columns of each block of a table.
fn blocks(head: &[String], lines: &[Vec<Cell>], left: usize) -> Vec<Vec<usize>> {
    // A heading breaks between its words and has the arrow of its order behind it; texts break too.
    let longest_word = |text: &str| text.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column)).map(|cell| match cell.class {
            "wide" => WIDE,
            _ if column < left => longest_word(&cell.text),
            _ => cell.text.chars().count(),
        });
        cells.max().unwrap_or(0).max(longest_word(&head[column]) + 2) + 2
    };
    let left = left.min(head.len());
    let first = (0..left).map(width).sum::<usize>();
    let (mut blocks, mut used) = (vec![(0..left).collect::<Vec<usize>>()], first);
    for column in left..head.len() {
        let own = width(column);
        if used + own > MAX_WIDTH && used > first {
            blocks.push((0..left).collect());
            used = first;
        }
        used += own;
        blocks.last_mut().expect("there is a first block").push(column);
    }
    blocks
}

fn block(head: &[String], lines: &[Vec<Cell>], left: usize, columns: &[usize]) -> String {
    let row = |tag: &str, cells: &[Cell]| {
        let cells = columns.iter().filter_map(|column| Some((*column, cells.get(*column)?)));
        let cells = cells.map(|(column, cell)| {
            let class = [if column < left { "text" } else { "" }, cell.class].join(" ");
            let class = match class.trim() {
                "" => String::new(),
                class => format!(" class=\"{class}\""),
            };
            let key = cell.key.map_or(String::new(), |key| format!(" data-key=\"{key}\""));
            format!("<{tag}{class}{key}>{}</{tag}>", escape(&cell.text))
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let body: String = lines.iter().map(|line| row("td", line)).collect();
    let head = row("th", &head.iter().map(|text| Cell::from(text.as_str())).collect::<Vec<_>>());
    format!("<div class=\"scroll\"><table>\n<thead>{head}</thead>\n<tbody>\n{body}</tbody></table></div>\n")
}

/// Text of a file that is shown on a click.
pub fn folded(summary: &str, text: &str) -> String {
    format!("<details><summary>{}</summary><pre>{}</pre></details>\n", escape(summary), escape(text))
}
