//! The examples run to their ends.

macro_rules! runs {
    ($($name:ident $path:literal)*) => {
        $(#[path = $path]
        mod $name;
        )*
        $(#[test]
        fn $name() {
            $name::main();
        })*
    };
}

runs! {
    own_cell "../own_cell.rs"
    own_control "../own_control.rs"
    own_scheduler "../own_scheduler.rs"
    own_event_loop "../own_event_loop.rs"
    ack_filter_queue "../ack_filter_queue.rs"
}
