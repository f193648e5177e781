//! `paceline completions` and `paceline man`: completions for shells and manual pages, from the definitions
//! of the options.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::results_folder::write_file;
use anyhow::Context;
use clap::Command;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(clap::Args)]
pub struct ManArgs {
    /// Folder for the pages; it is created if needed
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the completions of `command` for a shell.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Outcome {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "paceline", &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes one page for `command` and one for each command below it.
pub fn man(args: &ManArgs, mut command: Command) -> Outcome {
    let folder = &args.folder;
    if folder.is_file() {
        return Err(Failure::input(format!("{}: is a file; name a folder", folder.display())));
    }
    std::fs::create_dir_all(folder)
        .with_context(|| format!("{}: cannot be written", folder.display()))
        .map_err(Failure::Input)?;
    command.build();
    let pages = write_pages(folder, &command, "paceline")?;
    output::message(&format!("{} in {}\n", paceline_report::count(pages, "page"), folder.display()));
    Ok(ExitCode::SUCCESS)
}

/// Writes `NAME.1` for a command and for the visible ones below it. Gives the number of pages.
fn write_pages(folder: &Path, command: &Command, name: &str) -> anyhow::Result<u64> {
    let mut text = Vec::new();
    let titled = command.clone().display_name(name.to_owned());
    clap_mangen::Man::new(titled).render(&mut text)?;
    let file = folder.join(format!("{name}.1"));
    write_file(&file, &String::from_utf8_lossy(&text))
        .with_context(|| format!("cannot write {}", file.display()))?;
    let below = command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help");
    below
        .map(|c| write_pages(folder, c, &format!("{name}-{}", c.get_name())))
        .sum::<anyhow::Result<u64>>()
        .map(|n| n + 1)
}
