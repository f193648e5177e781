//! The integration tests of the command `paceline`: one program, a module for each subject.

mod bad_input;
mod cell;
mod command_lines;
mod common;
mod documents;
mod emulate;
mod events;
mod explain;
mod explain_grid;
mod explain_tshark;
mod fit;
mod gateway;
mod gateway_clients;
mod help;
mod kernel_parity;
mod links;
mod mistyped;
mod pace;
mod pattern;
mod police;
mod report;
mod reproduce;
mod results;
mod scripts;
mod sweep;
mod trace_survey;
