//! Rows as columns, for programs that take tables without parsing text.

use super::csv::Decimals;

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name, the same as in the CSV file.
    pub name: &'static str,
    /// A value for each row; any value where there is none.
    pub values: Values,
    /// Whether each row has a value; none if every row has one.
    pub present: Option<Vec<bool>>,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Numbers; NaN where a figure was not measured.
    Numbers(Vec<f64>),
    /// Words.
    Texts(Vec<String>),
}

/// A type of the fields of rows.
pub(super) trait Field {
    /// An empty column of this type.
    fn column(name: &'static str) -> Column;
    /// Adds a row's value.
    fn push(self, column: &mut Column);
    /// Adds a value of any kind in a row that has none.
    fn push_none(column: &mut Column);
}

/// A flat row: its fields are the columns.
pub(super) trait Row {
    /// The columns without rows.
    fn columns() -> Vec<Column>;
    /// Adds the row to the columns.
    fn push(self, columns: &mut [Column]);
}

/// The columns of rows.
pub(super) fn columns<R: Row>(rows: impl Iterator<Item = R>) -> Vec<Column> {
    let mut columns = R::columns();
    rows.for_each(|row| row.push(&mut columns));
    columns
}

/// Defines a row with its columns.
macro_rules! row {
    ($(#[$doc:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? {
        $($field:ident: $type:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(Default, serde::Serialize)]
        $vis struct $name $(<$life>)? {
            $($field: $type,)*
        }
        impl $(<$life>)? super::columns::Row for $name $(<$life>)? {
            fn columns() -> Vec<super::columns::Column> {
                vec![$(<$type as super::columns::Field>::column(stringify!($field))),*]
            }
            fn push(self, columns: &mut [super::columns::Column]) {
                let mut columns = columns.iter_mut();
                $(super::columns::Field::push(self.$field, columns.next().expect("a column of each field"));)*
            }
        }
    };
}
pub(super) use row;

/// A field of a type that a column holds.
macro_rules! field {
    ($($type:ty: $kind:ident, $empty:expr, $value:expr;)*) => {
        $(impl Field for $type {
            fn column(name: &'static str) -> Column {
                Column { name, values: Values::$kind(Vec::new()), present: None }
            }
            fn push(self, column: &mut Column) {
                let Values::$kind(values) = &mut column.values else { unreachable!("the column's type") };
                let value: fn(Self) -> _ = $value;
                values.push(value(self));
            }
            fn push_none(column: &mut Column) {
                let Values::$kind(values) = &mut column.values else { unreachable!("the column's type") };
                values.push($empty);
            }
        })*
    };
}

field! {
    u64: Integers, 0, |value| i64::try_from(value).unwrap_or(i64::MAX);
    usize: Integers, 0, |value| i64::try_from(value).unwrap_or(i64::MAX);
    u16: Integers, 0, i64::from;
    u8: Integers, 0, i64::from;
    String: Texts, String::new(), |value| value;
    &str: Texts, String::new(), str::to_owned;
}

impl<const N: usize> Field for Decimals<N> {
    fn column(name: &'static str) -> Column {
        Column { name, values: Values::Numbers(Vec::new()), present: None }
    }
    fn push(self, column: &mut Column) {
        let Values::Numbers(values) = &mut column.values else { unreachable!("the column's type") };
        values.push(self.0);
    }
    fn push_none(column: &mut Column) {
        Self(f64::NAN).push(column);
    }
}

impl<F: Field> Field for Option<F> {
    fn column(name: &'static str) -> Column {
        Column { present: Some(Vec::new()), ..F::column(name) }
    }
    fn push(self, column: &mut Column) {
        column.present.get_or_insert_default().push(self.is_some());
        match self {
            Some(value) => value.push(column),
            None => F::push_none(column),
        }
    }
    fn push_none(column: &mut Column) {
        None::<F>.push(column);
    }
}
