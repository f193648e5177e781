//! Safety on live traffic. Each test names its row of the table of hazards, or states the hazard.

mod given_up;
mod headers;
mod inactivity;
mod ip_headers;
mod lifecycle;
mod past_window;
mod pauses;
mod rates;
mod segments;
mod stop;
mod uplink;
mod windows;
