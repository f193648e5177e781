//! Safety on live traffic. Each test names its row of the table of hazards, or states the hazard.

mod headers;
mod inactivity;
mod ip_headers;
mod lifecycle;
mod pauses;
mod rates;
mod segments;
mod stop;
mod uplink;
mod windows;
