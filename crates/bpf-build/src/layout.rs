//! Translates the layouts that C and Rust share, in a header of the kernel programs, to Rust.

use std::fmt::Write;

/// The declarations of a header.
#[derive(Default)]
pub struct Layout {
    constants: Vec<(String, u64)>,
    structs: Vec<Struct>,
}

struct Struct {
    name: String,
    members: Vec<Member>,
    size: usize,
    align: usize,
}

struct Member {
    name: String,
    kind: Kind,
    offset: usize,
    size: usize,
}

enum Kind {
    /// A number in host byte order, with its Rust type.
    Number(&'static str),
    /// An array of numbers in host byte order: their Rust type and count.
    Numbers(&'static str, usize),
    /// Bytes, or numbers in network byte order.
    Bytes,
    /// A struct declared above, with its Rust name.
    Struct(String),
}

impl Layout {
    /// Parses the header; panics at anything that it does not understand.
    pub fn parse(header: &str) -> Self {
        let mut layout = Self::default();
        let mut declarations = String::new();
        for line in header.lines() {
            let code = line.split("//").next().unwrap_or("").trim();
            match code.split_whitespace().collect::<Vec<_>>()[..] {
                ["#define", name, value] => layout.constants.push((name.to_owned(), number(value))),
                _ if code.starts_with('#') => {}
                _ => declarations.push_str(code),
            }
        }
        for declaration in declarations.split("};").filter(|rest| !rest.is_empty()) {
            let (head, body) =
                declaration.split_once('{').unwrap_or_else(|| panic!("{declaration}: no body"));
            match head.split_whitespace().collect::<Vec<_>>()[..] {
                ["enum", _] => layout.add_enum(body),
                ["struct", name] => layout.add_struct(name, body),
                _ => panic!("{head}: neither enum nor struct"),
            }
        }
        layout
    }
    fn add_enum(&mut self, body: &str) {
        let mut next = 0;
        for enumerator in body.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let (name, value) = match enumerator.split_once('=') {
                Some((name, value)) => (name.trim(), number(value.trim())),
                None => (enumerator, next),
            };
            self.constants.push((name.to_owned(), value));
            next = value + 1;
        }
    }
    fn add_struct(&mut self, name: &str, body: &str) {
        let (mut members, mut offset, mut align) = (Vec::new(), 0, 1);
        for member in body.split(';').map(str::trim).filter(|member| !member.is_empty()) {
            let (kind, declared) =
                member.rsplit_once(' ').unwrap_or_else(|| panic!("{name}: {member} has no type"));
            let (declared, count) = match declared.trim_end_matches(']').split_once('[') {
                Some((declared, count)) => (declared, number(count) as usize),
                None => (declared, 1),
            };
            let (kind, size, own_align) = self.kind(kind, count);
            assert!(offset % own_align == 0, "{name}.{declared}: padding has to be written out");
            members.push(Member { name: declared.to_owned(), kind, offset, size });
            offset += size;
            align = align.max(own_align);
        }
        assert!(offset % align == 0, "{name}: padding at its end has to be written out");
        self.structs.push(Struct { name: name.to_owned(), members, size: offset, align });
    }
    /// Kind, size and alignment of a member of `count` elements.
    fn kind(&self, kind: &str, count: usize) -> (Kind, usize, usize) {
        match (kind, count) {
            ("__u8", 1) => (Kind::Number("u8"), 1, 1),
            ("__u16", 1) => (Kind::Number("u16"), 2, 2),
            ("__u32", 1) => (Kind::Number("u32"), 4, 4),
            ("__u64", 1) => (Kind::Number("u64"), 8, 8),
            ("__u32", _) => (Kind::Numbers("u32", count), 4 * count, 4),
            ("__u64", _) => (Kind::Numbers("u64", count), 8 * count, 8),
            ("__u8", _) => (Kind::Bytes, count, 1),
            ("__be16", _) => (Kind::Bytes, 2 * count, 2),
            ("__be32", _) => (Kind::Bytes, 4 * count, 4),
            (_, 1) => {
                let name = kind.strip_prefix("struct ").unwrap_or_else(|| panic!("{kind}: unknown type"));
                let known = self.structs.iter().find(|known| known.name == name);
                let known = known.unwrap_or_else(|| panic!("{kind} is not declared above"));
                (Kind::Struct(camel(name)), known.size, known.align)
            }
            _ => panic!("{kind}: no arrays of this type"),
        }
    }

    pub fn rust(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.constants {
            let _ = writeln!(text, "pub const {name}: u32 = {value};");
        }
        self.structs.iter().for_each(|layout| layout.add_rust(&mut text));
        text
    }
    /// Assertions for the C compiler, so that an error of this translation does not compile.
    pub fn asserts(&self, shared: &str) -> String {
        let mut text = format!("#include \"{shared}.h\"\n");
        for Struct { name, members, size, .. } in &self.structs {
            let _ = writeln!(text, "_Static_assert(sizeof(struct {name}) == {size}, \"\");");
            for Member { name: member, offset, .. } in members {
                let place = format!("__builtin_offsetof(struct {name}, {member})");
                let _ = writeln!(text, "_Static_assert({place} == {offset}, \"\");");
            }
        }
        text
    }
}

impl Struct {
    fn add_rust(&self, text: &mut String) {
        let (mut fields, mut writes, mut reads) = (String::new(), String::new(), String::new());
        for Member { name, kind, offset, size } in &self.members {
            let place = format!("{offset}..{}", offset + size);
            let (kind, bytes, read) = match kind {
                Kind::Number(kind) => (
                    (*kind).to_owned(),
                    format!("&self.{name}.to_ne_bytes()"),
                    format!("{kind}::from_ne_bytes(bytes.get({place})?.try_into().ok()?)"),
                ),
                Kind::Numbers(kind, count) => {
                    let one = size / count;
                    let read = format!(
                        "{{ let part = bytes.get({place})?; std::array::from_fn(|at| \
                         {kind}::from_ne_bytes(std::array::from_fn(|byte| part[{one} * at + byte]))) }}"
                    );
                    let bytes = format!("&self.{name}.map({kind}::to_ne_bytes).concat()");
                    (format!("[{kind}; {count}]"), bytes, read)
                }
                Kind::Bytes => (
                    format!("[u8; {size}]"),
                    format!("&self.{name}"),
                    format!("bytes.get({place})?.try_into().ok()?"),
                ),
                Kind::Struct(kind) => (
                    kind.clone(),
                    format!("&self.{name}.to_bytes()"),
                    format!("{kind}::from_bytes(bytes.get({place})?)?"),
                ),
            };
            let _ = writeln!(fields, "    pub {name}: {kind},");
            let _ = writeln!(writes, "        bytes[{place}].copy_from_slice({bytes});");
            let _ = writeln!(reads, "            {name}: {read},");
        }
        let (name, c_name, size) = (camel(&self.name), &self.name, self.size);
        let _ = write!(
            text,
            "/// `struct {c_name}`.\n#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]\n\
             pub struct {name} {{\n{fields}}}\n\
             impl {name} {{\n    pub fn to_bytes(self) -> [u8; {size}] {{\n        let mut bytes = [0; {size}];\n\
             {writes}        bytes\n    }}\n\
             \x20   pub fn from_bytes(bytes: &[u8]) -> Option<Self> {{\n        Some(Self {{\n{reads}        }})\n    }}\n}}\n"
        );
    }
}

/// `kernel_flow` as `KernelFlow`.
fn camel(name: &str) -> String {
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    name.split('_').map(capital).collect()
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}
