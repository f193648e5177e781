//! The values that the keys of a scenario may have, beyond their types. Each table states the limits of its
//! keys once ([`Section`]): the loader checks values against them ([`check`]), and they become a part of the
//! table's JSON schema ([`describe`]), from which the reference is made.

use paceline_net::Duration;
use schemars::Schema;
use serde::de::value::Error as NoValue;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, forward_to_deserialize_any};
use serde_json::{Map, Value, json};
use std::fmt::{Debug, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A value that is not allowed.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Problem {
    /// Dotted path, as `--set` takes it.
    pub key: String,
    /// The value; empty where the key itself is not allowed.
    pub value: String,
    /// The allowed values, or the whole reason.
    pub allowed: String,
    /// Whether `allowed` is a whole reason, such as an error of a standard's table.
    pub is_reason: bool,
}

impl Problem {
    /// Refuses the value of `key` for a whole reason.
    pub fn because(key: &str, value: impl Display, reason: impl Display) -> Self {
        Self { key: key.to_owned(), value: value.to_string(), allowed: reason.to_string(), is_reason: true }
    }
    /// Refuses a key that must be left out, with any value.
    pub fn without_value(key: &str, allowed: impl Display) -> Self {
        Self { is_reason: false, ..Self::because(key, "", allowed) }
    }
    /// The reason of the refusal.
    pub fn message(&self) -> String {
        if self.is_reason { self.allowed.clone() } else { format!("allowed: {}", self.allowed) }
    }
    /// Refuses the value of `key` unless `ok`.
    pub fn unless(ok: bool, key: &str, value: impl Display, allowed: &str) -> Result<(), Self> {
        if ok {
            return Ok(());
        }
        Err(Self { is_reason: false, ..Self::because(key, value, allowed) })
    }
}

/// A table of the scenario file.
pub(super) trait Section: Sized {
    /// The limits of its keys.
    fn limits() -> Vec<Limit<Self>>;
    /// Defaults that depend on other keys, as the reference states them.
    fn computed_defaults() -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// Finds the first value in the table `path` that is not allowed.
pub(super) fn check<S: Section>(path: &str, section: &S) -> Result<(), Problem> {
    for Limit { key, text, refused, message, .. } in S::limits() {
        if let Some(value) = refused(section) {
            let allowed = message.map_or(text, |message| message(section));
            return Err(Problem { key: format!("{path}.{key}"), value, allowed, is_reason: false });
        }
    }
    Ok(())
}

type Message<S> = Box<dyn Fn(&S) -> String>;
type Refused<S> = Box<dyn Fn(&S) -> Option<String>>;

/// A limit of one key of the table `S`; made by [`key!`] and [`relation!`].
pub(super) struct Limit<S> {
    key: &'static str,
    /// The allowed values, as the reference and (without a `message`) the error state them.
    text: String,
    /// JSON schema keywords for the limit, as far as they can express it.
    schema: Map<String, Value>,
    /// Unit of a plain number.
    unit: &'static str,
    /// Gives the value as text if it is not allowed.
    refused: Refused<S>,
    /// The error's text where values of other keys stand in it.
    message: Option<Message<S>>,
}

impl<S: 'static> Limit<S> {
    /// A limit of the value that `get` reads; `get` gives `None` where the key is left out.
    pub fn new<T: Display + 'static>(
        key: &'static str,
        get: fn(&S) -> Option<&T>,
        allowed: Allowed<T>,
    ) -> Self {
        let Allowed { text, schema, unit, test } = allowed;
        let refused =
            move |section: &S| get(section).filter(|value| !test(value)).map(|value| value.to_string());
        Self { key, text, schema, unit, refused: Box::new(refused), message: None }
    }
    /// A limit that depends on other keys of the table.
    pub fn relation<T: Display + 'static>(
        key: &'static str,
        get: fn(&S) -> Option<&T>,
        text: &str,
        holds: fn(&S) -> bool,
    ) -> Self {
        let refused =
            move |section: &S| get(section).filter(|_| !holds(section)).map(|value| value.to_string());
        let (text, schema) = (text.to_owned(), Map::new());
        Self { key, text, schema, unit: "", refused: Box::new(refused), message: None }
    }
    /// A limit of one kind of table or of another; `first` tells which.
    pub fn either<T: Display + 'static>(
        key: &'static str,
        get: fn(&S) -> Option<&T>,
        first: fn(&S) -> bool,
        (one_name, one): (&str, Allowed<T>),
        (other_name, other): (&str, Allowed<T>),
    ) -> Self {
        let text = format!("{one_name}: {}; {other_name}: {}", one.text, other.text);
        let (one_text, other_text, unit) = (one.text, other.text, one.unit);
        let (one, other) = (one.test, other.test);
        let refused = move |section: &S| {
            let test = if first(section) { &one } else { &other };
            get(section).filter(|value| !test(value)).map(|value| value.to_string())
        };
        let message = move |section: &S| (if first(section) { &one_text } else { &other_text }).clone();
        let (schema, message) = (Map::new(), Some(Box::new(message) as Message<S>));
        Self { key, text, schema, unit, refused: Box::new(refused), message }
    }
    /// States the unit of a plain number.
    pub fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }
    /// The error's text, in place of the reference's.
    pub fn message(self, message: fn(&S) -> String) -> Self {
        Self { message: Some(Box::new(message)), ..self }
    }
}

/// `key!(KEY, ALLOWED)`: a limit of a key of the table `Self`; `KEY?` where the key may be left out.
macro_rules! key {
    ($key:ident, $allowed:expr) => {
        $crate::limits::Limit::new(stringify!($key), |section: &Self| Some(&section.$key), $allowed)
    };
    ($key:ident?, $allowed:expr) => {
        $crate::limits::Limit::new(stringify!($key), |section: &Self| section.$key.as_ref(), $allowed)
    };
}

/// `relation!(KEY, TEXT, |section| CONDITION)`: a limit of a key that depends on other keys of its table.
macro_rules! relation {
    ($key:ident, $text:expr, $holds:expr) => {
        $crate::limits::Limit::relation(stringify!($key), |section: &Self| Some(&section.$key), $text, $holds)
    };
    ($key:ident?, $text:expr, $holds:expr) => {
        $crate::limits::Limit::relation(
            stringify!($key),
            |section: &Self| section.$key.as_ref(),
            $text,
            $holds,
        )
    };
}

pub(super) use {key, relation};

/// Allowed values of a type.
pub(super) struct Allowed<T> {
    text: String,
    schema: Map<String, Value>,
    unit: &'static str,
    test: Box<dyn Fn(&T) -> bool>,
}

impl<T> Allowed<T> {
    /// Values that pass `test`.
    pub fn new(text: impl Into<String>, test: impl Fn(&T) -> bool + 'static) -> Self {
        Self { text: text.into(), schema: Map::new(), unit: "", test: Box::new(test) }
    }
    /// States the unit of plain numbers.
    pub fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }.note(&format!(" {unit}"))
    }
    /// The limit as one of a type `U` that may have a value of this type in it.
    pub fn inside<U: 'static>(self, others: &str, get: fn(&U) -> Option<T>) -> Allowed<U>
    where
        T: 'static,
    {
        let Self { text, test, .. } = self;
        Allowed::new(format!("{others}{text}"), move |value| get(value).is_none_or(|inner| test(&inner)))
    }
    /// Adds to the text of the allowed values.
    pub fn note(mut self, note: &str) -> Self {
        self.text += note;
        self
    }
    fn keywords(mut self, keywords: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        self.schema.extend(keywords.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self
    }
}

/// Quantities with a unit from `low` to `high`.
pub(super) fn quantities<T>(low: &str, high: &str) -> Allowed<T>
where
    T: FromStr<Err: Debug> + PartialOrd + 'static,
{
    let (least, most): (T, T) = (quantity(low), quantity(high));
    Allowed::new(format!("{low} to {high}"), move |value| (&least..=&most).contains(&value))
}

/// Quantities with a unit of at least `low`.
pub(super) fn at_least<T: FromStr<Err: Debug> + PartialOrd + 'static>(low: &str) -> Allowed<T> {
    let least: T = quantity(low);
    Allowed::new(format!("at least {low}"), move |value| *value >= least)
}

/// Bit rates that links and hops may have.
pub(super) fn rates() -> Allowed<paceline_net::Rate> {
    quantities("1 kb/s", "1000 Gb/s")
}

/// Reads a limit of this program, not of a user.
fn quantity<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().expect("a limit is a quantity with its unit")
}

/// Numbers of a range.
pub(super) fn numbers<T>(range: RangeInclusive<T>) -> Allowed<T>
where
    T: Display + PartialOrd + Serialize + 'static,
{
    let text = format!("{} to {}", range.start(), range.end());
    let keywords = [("minimum", json!(range.start())), ("maximum", json!(range.end()))];
    Allowed::new(text, move |value| range.contains(value)).keywords(keywords)
}

/// Numbers of a list.
pub(super) fn one_of<T>(list: &[T]) -> Allowed<T>
where
    T: Copy + Display + PartialEq + Serialize + 'static,
{
    let values = list.to_vec();
    Allowed::new(format!("one of {}", join(list)), move |value| values.contains(value))
        .keywords([("enum", json!(list))])
}

/// Durations of a list, in milliseconds.
pub(super) fn one_of_ms(list: &[u64]) -> Allowed<Duration> {
    let values: Vec<Duration> = list.iter().copied().map(Duration::from_millis).collect();
    Allowed::new(format!("one of {} ms", join(list)), move |value| values.contains(value))
}

/// Durations from `low` to `high` in steps, or of a list, in milliseconds.
pub(super) fn steps_or_one_of_ms(low: u64, high: u64, step: u64, list: &[u64]) -> Allowed<Duration> {
    let steps = (low..=high).step_by(step as usize);
    let values: Vec<Duration> = steps.chain(list.iter().copied()).map(Duration::from_millis).collect();
    let text = format!("one of {low}, {}, .. {high}, {} ms", low + step, join(list));
    Allowed::new(text, move |value| values.contains(value))
}

/// Durations of whole milliseconds.
pub(super) fn whole_ms(range: RangeInclusive<u64>) -> Allowed<Duration> {
    let text = format!("{} to {} ms, whole milliseconds", range.start(), range.end());
    let test = move |value: &Duration| {
        value.as_nanos().is_multiple_of(1_000_000) && range.contains(&value.as_millis())
    };
    Allowed::new(text, test)
}

/// Values by name as a text, such as `20 ms (fixed, trace); 11 ms (lte_early)`. The most frequent value, if
/// it has three names or more, is last and without them: `1 s (linux); else 3 s`.
pub(super) fn by_name(values: impl IntoIterator<Item = (String, String)>) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (name, value) in values {
        match groups.iter_mut().find(|(other, _)| *other == value) {
            Some((_, names)) => names.push(name),
            None => groups.push((value, vec![name])),
        }
    }
    let most = groups.iter().map(|(_, names)| names.len()).max().unwrap_or(0);
    let usual = groups.iter().position(|(_, names)| names.len() == most && most >= 3 && groups.len() > 1);
    let usual = usual.map(|index| format!("else {}", groups.remove(index).0));
    let groups = groups.iter().map(|(value, names)| format!("{value} ({})", names.join(", ")));
    groups.chain(usual).collect::<Vec<_>>().join("; ")
}

fn join(list: &[impl Display]) -> String {
    let texts: Vec<String> = list.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// Adds to the JSON schema of the table `S`: limits, units and computed defaults of its keys, and their
/// order. Keywords of JSON schema stay; `x-limits`, `x-unit`, `x-default` and `x-order` are for the
/// reference.
pub(super) fn describe<S: Section + for<'de> Deserialize<'de> + 'static>(schema: &mut Schema) {
    order::<S>(schema);
    limit::<S>(schema);
}

/// Adds the limits, units and computed defaults alone.
pub(super) fn limit<S: Section + 'static>(schema: &mut Schema) {
    let keys = properties(schema);
    for Limit { key, text, schema: keywords, unit, .. } in S::limits() {
        let key = keys.get_mut(key).and_then(Value::as_object_mut).expect("a limit is of a key");
        let before = key.get("x-limits").and_then(Value::as_str);
        let text = before.map_or_else(|| text.clone(), |before| format!("{before}; {text}"));
        key.insert("x-limits".to_owned(), json!(text));
        key.extend(keywords);
        if !unit.is_empty() {
            key.insert("x-unit".to_owned(), json!(unit));
        }
    }
    for (key, text) in S::computed_defaults() {
        let key = keys.get_mut(key).and_then(Value::as_object_mut).expect("a default is of a key");
        key.insert("x-default".to_owned(), json!(text));
    }
}

/// Adds the order in which the table's form `F` declares its keys, without former names.
pub(super) fn order<F: for<'de> Deserialize<'de>>(schema: &mut Schema) {
    let known = properties(schema);
    let keys: Vec<&str> = keys::<F>().iter().copied().filter(|key| known.contains_key(*key)).collect();
    schema.insert("x-order".to_owned(), json!(keys));
}

/// Sets the default of every key to its value in `table`.
pub(super) fn defaults(schema: &mut Schema, table: &impl Serialize) {
    let table = serde_json::to_value(table).expect("a table is plain data");
    for (key, value) in table.as_object().into_iter().flatten() {
        let key = properties(schema).get_mut(key).and_then(Value::as_object_mut).expect("a key of the table");
        key.insert("default".to_owned(), value.clone());
    }
}

/// Removes the defaults of all keys: those of a table whose keys default to another table's.
pub(super) fn without_defaults(schema: &mut Schema) {
    for key in properties(schema).values_mut().filter_map(Value::as_object_mut) {
        key.remove("default");
        key.remove("x-default");
    }
}

fn properties(schema: &mut Schema) -> &mut Map<String, Value> {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    properties.expect("a table has keys")
}

/// The keys of a struct, in the order of its declaration.
pub(super) fn keys<F: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    struct Keys<'a>(&'a mut &'static [&'static str]);
    impl<'de> Deserializer<'de> for Keys<'_> {
        type Error = NoValue;
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoValue> {
            Err(NoValue::custom("only keys are read"))
        }
        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, NoValue> {
            *self.0 = fields;
            self.deserialize_any(visitor)
        }
        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    let mut keys: &'static [&'static str] = &[];
    let _ = F::deserialize(Keys(&mut keys));
    keys
}
