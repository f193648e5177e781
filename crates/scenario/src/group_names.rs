//! Names of the groups of stations: those that the scenario gives, else names that follow from the groups'
//! congestion control or traffic where these differ, else the keys of their tables.

use super::{Direction, Scenario, Stations, Traffic};

impl Scenario {
    /// A name for each group of stations, all different.
    pub fn group_names(&self) -> Vec<String> {
        let short: Vec<String> = self.stations.iter().map(|group| self.payload(group)).collect();
        let long: Vec<String> =
            self.stations.iter().zip(&short).map(|(group, short)| with_direction(group, short)).collect();
        let name = |index: usize| {
            let given = self.stations[index].name.clone();
            given.or_else(|| self.own(&short, index)).or_else(|| self.own(&long, index))
        };
        (0..self.stations.len()).map(|index| name(index).unwrap_or(format!("station.{index}"))).collect()
    }
    /// The name of a group among these if it tells it from all others.
    fn own(&self, names: &[String], index: usize) -> Option<String> {
        let name = &names[index];
        let others = || (0..names.len()).filter(|other| *other != index);
        let taken = others().any(|other| names[other] == *name)
            || self.stations.iter().any(|group| group.name.as_ref() == Some(name));
        (others().next().is_some() && !taken).then(|| name.clone())
    }
    /// The congestion control of a group that has TCP connections; else its transport protocol.
    fn payload(&self, group: &Stations) -> String {
        match (group.direction, group.traffic) {
            (Direction::None, _) => String::from("no traffic"),
            (_, Traffic::Tcp) => self.tcp_of(group).congestion_control.name().to_owned(),
            (_, Traffic::Udp) => String::from("udp"),
            (_, Traffic::Ping) => String::from("ping"),
        }
    }
}

fn with_direction(group: &Stations, name: &str) -> String {
    match group.direction {
        Direction::Download => format!("{name} download"),
        Direction::Upload => format!("{name} upload"),
        Direction::None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::load;

    fn names(groups: &[&str]) -> Vec<String> {
        let text: String = groups.iter().map(|keys| format!("[[station]]\n{keys}\n")).collect();
        load("test.toml", &text, &[]).unwrap().group_names()
    }

    #[test]
    fn a_group_has_its_own_name_or_one_that_tells_it_from_the_others() {
        assert_eq!(names(&["name = \"BBR 3\""]), ["BBR 3"]);
        assert_eq!(names(&[""]), ["station.0"]);
        let bbr = "tcp = { congestion_control = \"bbr\" }";
        assert_eq!(names(&["", bbr, "traffic = \"udp\""]), ["cubic", "bbr", "udp"]);
        assert_eq!(names(&["", "direction = \"upload\""]), ["cubic download", "cubic upload"]);
        assert_eq!(names(&["", "", bbr]), ["station.0", "station.1", "bbr"]);
        assert_eq!(names(&["name = \"cubic\"", "", bbr]), ["cubic", "station.1", "bbr"]);
    }

    #[test]
    fn names_of_other_characters_and_equal_names_are_refused() {
        for (groups, part) in [
            ("[[station]]\nname = \"a,b\"\n", "station.0.name = a,b: allowed: 1 to 32 letters"),
            ("[[station]]\nname = \"\"\n", "station.0.name: allowed: 1 to 32 letters"),
            ("[[station]]\nname = \" a\"\n", "a letter or digit first"),
            ("[[station]]\nname = \"a\"\n[[station]]\nname = \"a\"\n", "test.toml:4: station.1.name = a: "),
        ] {
            let error = load("test.toml", groups, &[]).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
