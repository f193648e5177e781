//! A network in virtual time: servers, a wired link, the accelerator or nothing, a mobile link, clients.
//! Servers and clients are endpoints of `paceline-tcp`. A link has a rate or a trace of opportunities, a
//! drop-tail queue, a delay and faults.
#![allow(dead_code)] // each test file uses its part

use paceline_net::{Bytes, Duration, Instant, Node, Output, Packet, Port, Rate, SeqNumber, Stream};
use paceline_pep::accelerator::{Accelerator, AcceleratorConfig};
use paceline_tcp::{Endpoint, EndpointConfig, Source};
use std::collections::{BTreeMap, VecDeque};

/// The capacity of a link over time.
pub enum Capacity {
    Rate(Rate),
    /// Changes of the rate, by time.
    Steps(Vec<(Instant, Rate)>),
    /// Times in milliseconds at which 1504 bytes may leave (mahimahi), repeated with the period of the last.
    Trace(Vec<u64>),
}

/// One direction of a link: a drop-tail queue that is served at the capacity, then a delay.
pub struct Link {
    pub capacity: Capacity,
    pub delay: Duration,
    pub queue_limit: u64,
    /// Whether a packet is lost after the queue, by its number and time.
    pub lose: Box<dyn FnMut(u64, Instant) -> bool>,
    /// Extra delay after the queue, by number and time.
    pub extra: Box<dyn FnMut(u64, Instant) -> Duration>,
    queue: VecDeque<(Instant, Packet)>,
    queued: u64,
    free_at: Instant,
    opportunity: u64,
    credit: u64,
    in_flight: BTreeMap<(Instant, u64), Packet>,
    count: u64,
    pub dropped: u64,
    /// Queueing delays of the packets that left, in nanoseconds.
    pub waits: Vec<u64>,
    pub carried: u64,
    pub data_packets: u64,
}

impl Link {
    pub fn new(capacity: Capacity, delay_ms: u64, queue_limit: u64) -> Self {
        Self {
            capacity,
            delay: Duration::from_millis(delay_ms),
            queue_limit,
            lose: Box::new(|_, _| false),
            extra: Box::new(|_, _| Duration::ZERO),
            queue: VecDeque::new(),
            queued: 0,
            free_at: Instant::ZERO,
            opportunity: 0,
            credit: 0,
            in_flight: BTreeMap::new(),
            count: 0,
            dropped: 0,
            waits: Vec::new(),
            carried: 0,
            data_packets: 0,
        }
    }
    pub fn rate(rate: &str, delay_ms: u64, queue_limit: u64) -> Self {
        Self::new(Capacity::Rate(rate.parse().expect("a rate")), delay_ms, queue_limit)
    }
    pub fn lossy(mut self, probability: f64, seed: u64, name: &str) -> Self {
        let mut stream = Stream::new(seed, name);
        self.lose = Box::new(move |_, _| stream.chance(probability));
        self
    }
    pub fn push(&mut self, now: Instant, packet: Packet) {
        self.serve(now);
        let len = u64::from(packet.len);
        if self.queued + len > self.queue_limit && !self.queue.is_empty() {
            self.dropped += 1;
            return;
        }
        if self.queue.is_empty() {
            self.free_at = self.free_at.max(now);
        }
        self.queued += len;
        self.queue.push_back((now, packet));
        self.serve(now);
    }
    /// When the head of the queue has been sent.
    fn head_leaves_at(&self) -> Option<Instant> {
        let (_, packet) = self.queue.front()?;
        let len = u64::from(packet.len);
        match &self.capacity {
            Capacity::Rate(rate) => Some(self.free_at + rate.time_to_send(Bytes(len))),
            Capacity::Steps(steps) => {
                let mut at = self.free_at;
                let mut left = len as f64 * 8.0;
                let mut index = steps.partition_point(|(from, _)| *from <= at).saturating_sub(1);
                loop {
                    let until = steps.get(index + 1).map_or(Instant::MAX, |(from, _)| *from);
                    let rate = steps[index].1.0 as f64;
                    let possible = until.since(at).as_secs_f64() * rate;
                    if possible >= left {
                        return Some(at + Duration::from_secs_f64(left / rate) + Duration::from_nanos(1));
                    }
                    left -= possible;
                    at = until;
                    index += 1;
                }
            }
            Capacity::Trace(stamps) => {
                let (period, n) = (*stamps.last().expect("a trace has stamps"), stamps.len() as u64);
                let mut at = self.opportunity;
                let mut credit = self.credit;
                loop {
                    let ms = stamps[(at % n) as usize] + at / n * period;
                    let time = Instant::from_millis(ms);
                    if time >= self.free_at {
                        credit += 1504;
                    }
                    if credit >= len {
                        return Some(time);
                    }
                    at += 1;
                }
            }
        }
    }
    fn serve(&mut self, now: Instant) {
        while let Some(at) = self.head_leaves_at().filter(|at| *at <= now) {
            let (arrived, packet) = self.queue.pop_front().expect("there is a head");
            let len = u64::from(packet.len);
            if let Capacity::Trace(stamps) = &self.capacity {
                let (period, n) = (*stamps.last().expect("stamps"), stamps.len() as u64);
                // Opportunities without a packet are lost; the remainder of a used one is not.
                loop {
                    let time = Instant::from_millis(
                        stamps[(self.opportunity % n) as usize] + self.opportunity / n * period,
                    );
                    if time < self.free_at.max(arrived) {
                        self.opportunity += 1;
                        self.credit = 0;
                        continue;
                    }
                    if self.credit >= len {
                        break;
                    }
                    self.credit += 1504;
                    self.opportunity += 1;
                }
                self.credit -= len;
                if self.queue.is_empty() {
                    self.credit = 0;
                }
            }
            self.queued -= len;
            self.free_at = at;
            self.waits.push(at.since(arrived).as_nanos());
            self.carried += len;
            self.count += 1;
            if !(self.lose)(self.count, at) {
                let lands = at + self.delay + (self.extra)(self.count, at);
                self.in_flight.insert((lands, self.count), packet);
            } else {
                self.dropped += 1;
            }
        }
    }
    pub fn next(&self) -> Option<Instant> {
        let landing = self.in_flight.first_key_value().map(|((at, _), _)| *at);
        [landing, self.head_leaves_at()].into_iter().flatten().min()
    }
    pub fn pop(&mut self, now: Instant) -> Option<Packet> {
        self.serve(now);
        let first = self.in_flight.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }
    pub fn percentile_ms(&self, share: f64) -> f64 {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let at = ((waits.len() as f64 - 1.0) * share) as usize;
        waits.get(at).copied().unwrap_or(0) as f64 / 1e6
    }
}

/// The node between the two links.
pub enum Middle {
    Nothing,
    Accelerator(Box<Accelerator>),
}

pub struct Network {
    pub now: Instant,
    pub servers: Vec<Endpoint>,
    pub clients: Vec<Endpoint>,
    pub middle: Middle,
    /// Towards the client, and back.
    pub wired: [Link; 2],
    pub mobile: [Link; 2],
    /// A middlebox between the clients and the node in the middle.
    pub change_ack: Box<dyn FnMut(&mut Packet)>,
    pub steps: u64,
    /// Bytes read by the clients by time, once each millisecond.
    pub delivered: Vec<(Instant, u64)>,
    /// Data of the first server that its client has not read: end in the stream, and when it was first sent.
    unread: VecDeque<(u64, Instant)>,
    first_seq: Option<SeqNumber>,
    /// Time from sending to reading of the first server's packets, by the time of reading.
    pub ages: Vec<(Instant, Duration)>,
}

/// The accelerator with its adaptive rate control.
pub fn adaptive() -> Option<AcceleratorConfig> {
    Some(AcceleratorConfig::default())
}

/// Client and server of connection number `n`.
pub fn configs(n: u16) -> (EndpointConfig, EndpointConfig) {
    let client = format!("198.18.0.1:{}", 40_000 + n).parse().expect("an address");
    let server = "198.19.0.2:80".parse().expect("an address");
    (EndpointConfig::new(client, server), EndpointConfig::new(server, client))
}

impl Network {
    /// One download of `source` over a wired link of 1 Gb/s.
    pub fn download(
        source: Source,
        accelerator: Option<AcceleratorConfig>,
        wired_ms: u64,
        mobile: [Link; 2],
    ) -> Self {
        Self::with(configs(0), source, accelerator, wired_ms, mobile)
    }
    pub fn with(
        (client, server): (EndpointConfig, EndpointConfig),
        source: Source,
        accelerator: Option<AcceleratorConfig>,
        wired_ms: u64,
        mobile: [Link; 2],
    ) -> Self {
        let middle = accelerator
            .map_or(Middle::Nothing, |config| Middle::Accelerator(Box::new(Accelerator::new(config))));
        Self {
            now: Instant::ZERO,
            servers: vec![Endpoint::listen(server, source)],
            clients: vec![Endpoint::connect(client, Source::Nothing)],
            middle,
            wired: [0, 1].map(|_| Link::rate("1 Gb/s", wired_ms, 50_000_000)),
            mobile,
            change_ack: Box::new(|_| ()),
            steps: 0,
            delivered: Vec::new(),
            unread: VecDeque::new(),
            first_seq: None,
            ages: Vec::new(),
        }
    }
    /// Adds connection number `n`, from 1; `client` is the last byte of its client's address.
    pub fn add(&mut self, n: u16, client: u8, source: Source) {
        let (mut own, mut server) = configs(n);
        own.local = format!("198.18.0.{client}:{}", own.local.port()).parse().expect("an address");
        server.remote = own.local;
        self.servers.push(Endpoint::listen(server, source));
        self.clients.push(Endpoint::connect(own, Source::Nothing));
    }
    pub fn accelerator(&self) -> &Accelerator {
        match &self.middle {
            Middle::Accelerator(accelerator) => accelerator,
            Middle::Nothing => panic!("there is none"),
        }
    }
    /// A packet of the first server leaves.
    fn note_sent(&mut self, packet: &Packet) {
        let tcp = packet.tcp_header().expect("TCP");
        let end = (tcp.seq + tcp.payload_len).distance(*self.first_seq.get_or_insert(tcp.seq));
        // The SYN is offset 0.
        let end = u64::try_from(end).expect("the transfer is short").saturating_sub(1);
        if tcp.payload_len > 0 && self.unread.back().is_none_or(|(last, _)| *last < end) {
            self.unread.push_back((end, self.now));
        }
    }
    /// The first client has read some data.
    fn note_read(&mut self) {
        let read = self.clients[0].stats().bytes_read;
        while let Some((_, sent_at)) = self.unread.pop_front_if(|(end, _)| *end <= read) {
            self.ages.push((self.now, self.now.since(sent_at)));
        }
    }
    fn drain(&mut self) {
        let now = self.now;
        for n in 0..self.servers.len() {
            while let Some(output) = self.servers[n].poll_output(now) {
                if let Output::Transmit(_, packet) = output {
                    if n == 0 {
                        self.note_sent(&packet);
                    }
                    self.wired[0].push(now, packet);
                }
            }
        }
        for client in &mut self.clients {
            while let Some(output) = client.poll_output(now) {
                if let Output::Transmit(_, packet) = output {
                    self.mobile[1].push(now, packet);
                }
            }
        }
        if let Middle::Accelerator(accelerator) = &mut self.middle {
            while let Some(output) = accelerator.poll_output(now) {
                match output {
                    Output::Transmit(Port(0), packet) => self.wired[1].push(now, packet),
                    Output::Transmit(_, packet) => self.mobile[0].push(now, packet),
                    _ => {}
                }
            }
        }
    }
    pub fn step(&mut self, end: Instant) -> bool {
        self.drain();
        let links = [&self.wired[0], &self.wired[1], &self.mobile[0], &self.mobile[1]];
        let middle = match &self.middle {
            Middle::Accelerator(accelerator) => accelerator.poll_timeout(),
            Middle::Nothing => None,
        };
        let next = links
            .iter()
            .filter_map(|link| link.next())
            .chain(self.servers.iter().chain(&self.clients).filter_map(Node::poll_timeout))
            .chain(middle)
            .min();
        let Some(next) = next.filter(|next| *next <= end) else { return false };
        assert!(next >= self.now, "time does not go back: {next:?} after {:?}", self.now);
        self.now = next;
        self.steps += 1;
        self.land();
        for endpoint in self.servers.iter_mut().chain(&mut self.clients) {
            if endpoint.poll_timeout().is_some_and(|at| at <= next) {
                endpoint.handle_timeout(next);
            }
        }
        if let Middle::Accelerator(accelerator) = &mut self.middle
            && accelerator.poll_timeout().is_some_and(|at| at <= next)
        {
            Node::handle_timeout(&mut **accelerator, next);
        }
        if self.delivered.last().is_none_or(|(at, _)| next.as_millis() > at.as_millis()) {
            let read = self.clients.iter().map(|client| client.stats().bytes_received).sum();
            self.delivered.push((next, read));
        }
        true
    }
    fn land(&mut self) {
        let now = self.now;
        while let Some(packet) = self.wired[0].pop(now) {
            match &mut self.middle {
                Middle::Accelerator(accelerator) => accelerator.handle_packet(now, Port(0), packet),
                Middle::Nothing => self.mobile[0].push(now, packet),
            }
        }
        while let Some(mut packet) = self.mobile[1].pop(now) {
            (self.change_ack)(&mut packet);
            match &mut self.middle {
                Middle::Accelerator(accelerator) => accelerator.handle_packet(now, Port(1), packet),
                Middle::Nothing => self.wired[1].push(now, packet),
            }
        }
        while let Some(packet) = self.mobile[0].pop(now) {
            let key = packet.flow_key().expect("TCP").reversed();
            if let Some(client) = self.clients.iter_mut().find(|client| client.flow_key() == key) {
                client.handle_packet(now, Port(0), packet);
            }
        }
        self.note_read();
        while let Some(packet) = self.wired[1].pop(now) {
            let key = packet.flow_key().expect("TCP").reversed();
            if let Some(server) = self.servers.iter_mut().find(|server| server.flow_key() == key) {
                server.handle_packet(now, Port(0), packet);
            }
        }
    }
    pub fn run_ms(&mut self, ms: u64) {
        let end = Instant::from_millis(ms);
        while self.step(end) {}
        self.now = end;
    }
    /// Bytes that the clients have read.
    pub fn received(&self) -> u64 {
        self.clients.iter().map(|client| client.stats().bytes_received).sum()
    }
    /// Goodput of the clients between two times in milliseconds, in Mb/s.
    pub fn goodput_mbps(&self, from_ms: u64, until_ms: u64) -> f64 {
        self.received_between(from_ms, until_ms) as f64 * 8.0 / ((until_ms - from_ms) as f64 * 1e3)
    }
    /// Bytes read by the clients between two times in milliseconds.
    pub fn received_between(&self, from_ms: u64, until_ms: u64) -> u64 {
        let at = |ms: u64| {
            let index = self.delivered.partition_point(|(at, _)| at.as_millis() <= ms);
            index.checked_sub(1).map_or(0, |index| self.delivered[index].1)
        };
        at(until_ms) - at(from_ms)
    }
}
