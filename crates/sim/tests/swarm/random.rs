//! Random scenarios: stations, hops, TCP, cells, deployments and links, drawn from a stream.

use paceline_net::{Bytes, Duration, Rate, Stream};
use paceline_pep::Scheme;
use paceline_sim::scenario;
use paceline_sim::scenario::{
    Access, BlockageModel, Cell, Cells, Cellular, Deployment, DeploymentModel, Direction, FadingProfile,
    FixedLink, GnbName, Handover, HandoverFate, HandoverKind, HandoverTrigger, Held, Hop, Link, Movement,
    PacingPattern, Pairs, Place, ProactiveGrant, QueueDiscipline, RlcMode, Scenario, Scheduler, Sidelink,
    SidelinkFate, SidelinkPath, SidelinkSelection, SinrRange, Stations, TraceFile, TraceLink, Traffic,
    TrailingReport, Transfer, UdpArrivals,
};
use paceline_tcp::{
    BeyondWindow, CwndUnit, EcnMode, LossRecovery, Nagle, NewRenoTimer, Pacing, Profile, PrrMode, RtoStyle,
    Variant,
};

pub fn pick<T: Copy>(stream: &mut Stream, from: &[T]) -> T {
    from[stream.below(from.len() as u64) as usize]
}

fn random_hop(stream: &mut Stream) -> Hop {
    Hop {
        rate: paceline_net::Rate(pick(stream, &[1_000_000, 20_000_000, 1_000_000_000])),
        delay: Duration::from_micros(stream.below(40_000)),
        queue: Bytes(1_500 + stream.below(500_000)),
        ecn_threshold: stream.chance(0.3).then_some(Bytes(1_500)),
        ..Hop::new(Rate(1), Duration::ZERO)
    }
}

fn random_transfer(stream: &mut Stream) -> Transfer {
    let chunk = stream.chance(0.5).then(|| Bytes(1 + stream.below(3_000)));
    Transfer {
        start: Duration::from_millis(stream.below(500)),
        file: Bytes((1 + stream.below(1_000)) * chunk.map_or(2_000, |chunk| chunk.0)),
        chunk,
        chunk_interval: chunk.map(|_| Duration::from_micros(1 + stream.below(100_000))),
    }
}

fn random_stations(stream: &mut Stream) -> Stations {
    let other = if stream.chance(0.5) { Traffic::Udp } else { Traffic::Ping };
    let traffic = if stream.chance(0.2) { other } else { Traffic::Tcp };
    let chunk = (traffic == Traffic::Tcp && stream.chance(0.2)).then(|| Bytes(1 + stream.below(3_000)));
    let pieces = chunk.map_or(1, |chunk| chunk.0);
    let file = stream.chance(0.4).then(|| Bytes((1 + stream.below(2_000_000 / pieces)) * pieces));
    let low = stream.uniform_in(-10.0, 20.0);
    let mut stations = Stations {
        name: None,
        count: 1 + stream.below(4),
        path: Vec::new(),
        path_returns: false,
        peer: true,
        proxy: true,
        downlink_sinr: SinrRange::fixed(low),
        uplink_sinr: SinrRange::fixed(stream.uniform_in(-8.0, 15.0)),
        fading: paceline_net::units::Db(stream.uniform_in(0.0, 6.0)),
        coherence: Duration::from_millis(1 + stream.below(100)),
        flows: 1 + stream.below(3) as u32,
        direction: pick(
            stream,
            &[Direction::Download, Direction::Download, Direction::Upload, Direction::None],
        ),
        traffic,
        udp_rate: Rate(100_000 + stream.below(20_000_000)),
        udp_arrivals: pick(stream, &[UdpArrivals::Constant, UdpArrivals::Poisson]),
        udp_payload: Bytes(1 + stream.below(2_000)),
        ping_interval: Duration::from_micros(100 + stream.below(200_000)),
        ping_payload: Bytes(1 + stream.below(2_000)),
        processing: Duration::from_micros(pick(stream, &[0, 0, 137, 4_000])),
        file,
        chunk,
        chunk_interval: Duration::from_micros(100 + stream.below(100_000)),
        start: Duration::from_millis(stream.below(500)),
        start_spread: Duration::from_millis(stream.below(500)),
        request: None,
        transfers: Vec::new(),
        tcp: None,
    };
    let has_request =
        traffic == Traffic::Tcp && stations.direction == Direction::Download && stream.chance(0.3);
    stations.request = has_request.then(|| Bytes(1 + stream.below(5_000)));
    // A copy of the stream: the stations that follow are those of a swarm without lists of transfers.
    let own = &mut stream.clone();
    if traffic == Traffic::Tcp && stations.direction != Direction::None && own.chance(0.1) {
        stations.transfers = (0..1 + own.below(4)).map(|_| random_transfer(own)).collect();
        (stations.flows, stations.file, stations.chunk, stations.start) = (1, None, None, Duration::ZERO);
    }
    stations
}

fn random_tcp(stream: &mut Stream, tcp: &mut scenario::Tcp) {
    *tcp = scenario::Tcp::of(pick(stream, &Profile::ALL));
    let recoveries = [
        LossRecovery::Tahoe,
        LossRecovery::Reno,
        LossRecovery::NewReno,
        LossRecovery::Sack,
        LossRecovery::Rack,
    ];
    if stream.chance(0.5) {
        tcp.loss_recovery = pick(stream, &recoveries);
        tcp.prr = pick(stream, &[PrrMode::Off, PrrMode::Rfc6937Crb, PrrMode::Rfc6937Ssrb, PrrMode::Rfc9937]);
        tcp.newreno_timer = pick(stream, &[NewRenoTimer::Impatient, NewRenoTimer::SlowButSteady]);
        tcp.rto_style = pick(stream, &[RtoStyle::Linux, RtoStyle::Rfc6298]);
        tcp.nagle = pick(stream, &[Nagle::Off, Nagle::Rfc896, Nagle::Minshall]);
        tcp.ecn = pick(stream, &[EcnMode::Off, EcnMode::On, EcnMode::Passive]);
        tcp.beyond_window = pick(stream, &[BeyondWindow::Accept, BeyondWindow::Drop]);
    }
    if stream.chance(0.3) {
        tcp.cwnd_unit = pick(stream, &[CwndUnit::Segments, CwndUnit::Bytes]);
    }
    for flag in [
        &mut tcp.newreno_careful,
        &mut tcp.fast_convergence,
        &mut tcp.tail_loss_probe,
        &mut tcp.frto,
        &mut tcp.undo,
        &mut tcp.limited_transmit,
        &mut tcp.idle_restart,
        &mut tcp.keepalive,
        &mut tcp.delayed_ack_adaptive,
        &mut tcp.sack_compression,
        &mut tcp.stretch_ack_duplicates,
        &mut tcp.timestamps,
        &mut tcp.sack,
        &mut tcp.dsack,
        &mut tcp.window_scale,
    ] {
        *flag ^= stream.chance(0.15);
    }
    tcp.keepalive_idle = Duration::from_millis(1 + stream.below(3_000));
    tcp.keepalive_interval = Duration::from_millis(1 + stream.below(1_000));
    tcp.pacing = pick(
        stream,
        &[
            Pacing::None,
            Pacing::Linux,
            Pacing::External(Rate(5_000_000)),
            Pacing::LinuxPerSegment,
            Pacing::Tdd,
            Pacing::TddPublished,
        ],
    );
    tcp.pacing_pattern = if stream.chance(0.5) { PacingPattern::Cell } else { PacingPattern::Learned };
    tcp.stretch_ack_segments = if stream.chance(0.3) { 1 + stream.below(10) as u32 } else { 1 };
    tcp.read_rate = stream.chance(0.2).then(|| Rate(100_000 + stream.below(50_000_000)));
}

fn cells(scenario: &mut Scenario) -> &mut Cells {
    let Access::Cells(cells) = &mut scenario.access else { panic!("the scenario has cells") };
    cells
}

pub fn random_scenario(stream: &mut Stream) -> Scenario {
    let text = "[[station]]\n[run]\nduration = \"3 s\"\nwarmup = \"1 s\"\n";
    let mut scenario = scenario::load("swarm.toml", text, &[]).unwrap();
    scenario.stations = (0..1 + stream.below(3)).map(|_| random_stations(stream)).collect();
    scenario.core.hops = (0..stream.below(4)).map(|_| random_hop(stream)).collect();
    let shared = stream.below(4) as usize;
    scenario.core.hops.iter_mut().skip(shared).for_each(|hop| hop.per_cell = true);
    let cells = cells(&mut scenario);
    let cell = &mut cells.cell;
    let mhz = [1_400_000, 3_000_000, 5_000_000, 10_000_000, 15_000_000, 20_000_000];
    cell.bandwidth.0 = pick(stream, &mhz);
    cell.uplink_bandwidth = stream.chance(0.5).then(|| paceline_net::units::Hertz(pick(stream, &mhz)));
    cell.pucch_prb = stream.below(5) as u16;
    cell.downlink_grants = 1 + stream.below(12) as usize;
    cell.uplink_grants = 1 + stream.below(12) as usize;
    cell.max_harq_tx = 1 + stream.below(5) as u32;
    cell.uplink_64qam = stream.chance(0.5);
    cell.t_reordering = Duration::from_millis(5 * stream.below(20));
    cell.decode_delay = Duration::from_millis(stream.below(4));
    cell.downlink_buffer = Bytes(3_000 + stream.below(1_000_000));
    cell.uplink_buffer = Bytes(3_000 + stream.below(100_000));
    cell.sr_period = Duration::from_millis(pick(stream, &[1, 2, 5, 10, 20, 40, 80]));
    cell.sr_prohibit = stream.below(3);
    cell.gnb = pick(stream, &[GnbName::Ideal, GnbName::Srsran]);
    cell.proactive_grant = stream.chance(0.2).then(|| ProactiveGrant {
        after: Duration::from_millis(stream.below(20)),
        size: Bytes(7 + stream.below(1_000)),
        inactivity: stream.chance(0.7).then(|| Duration::from_millis(stream.below(300))),
    });
    cell.periodic_bsr_timer = Duration::from_millis(pick(stream, &[5, 10, 40, 640]));
    cell.sr_detection = pick(stream, &[1.0, 1.0, 0.9, 0.3]);
    cell.dsr_trans_max = pick(stream, &[4, 8, 64]);
    cell.initial_access = stream.chance(0.5);
    cell.prach_config_index = stream.below(14) as u8;
    cell.ra_preambles = 4 + 4 * stream.below(16);
    cell.preamble_trans_max = pick(stream, &[3, 10, 200]);
    cell.ra_response_window = Duration::from_millis(pick(stream, &[2, 5, 10]));
    cell.ra_responses = 1 + stream.below(4) as usize;
    cell.backoff_indicator = Duration::from_millis(pick(stream, &[0, 20, 960]));
    cell.contention_resolution_timer = Duration::from_millis(pick(stream, &[8, 48, 64]));
    cell.max_harq_msg3_tx = 1 + stream.below(5) as u32;
    cells.ack_filter.scheme = pick(
        stream,
        &[
            Scheme::Basic,
            Scheme::Passive { ratio: 0.5 },
            Scheme::Active { threshold: 3 },
            Scheme::Hybrid { threshold: 6 },
            Scheme::HybridOpt,
            Scheme::Safe,
        ],
    );
    for hop in &mut scenario.core.hops {
        if stream.chance(0.15) {
            hop.queue_discipline = pick(stream, &[QueueDiscipline::Codel, QueueDiscipline::FqCodel]);
            hop.ecn_threshold = None;
        }
    }
    random_tcp(stream, &mut scenario.tcp);
    scenario.tcp.congestion_control = pick(stream, &Variant::ALL);
    scenario.tcp.segment_size = Bytes(pick(stream, &[64, 536, 1200, 1448]));
    scenario.tcp.autotune = stream.chance(0.5);
    scenario.tcp.delayed_ack_segments = 1 + stream.below(4) as u32;
    scenario
}

/// A random scenario in a deployment, where some stations are out of coverage.
pub fn random_deployment(stream: &mut Stream) -> Scenario {
    let mut scenario = random_scenario(stream);
    // In a deployment the position determines the radio link, and the scenario must not state it.
    let unset = Stations::default();
    for group in &mut scenario.stations {
        (group.downlink_sinr, group.uplink_sinr) = (unset.downlink_sinr, unset.uplink_sinr);
        (group.fading, group.coherence) = (unset.fading, unset.coherence);
    }
    cells(&mut scenario).deployment = Some(Deployment {
        model: pick(
            stream,
            &[
                DeploymentModel::Case1,
                DeploymentModel::Case3,
                DeploymentModel::UmaM2135,
                DeploymentModel::UmiM2135,
                DeploymentModel::Uma38901,
                DeploymentModel::Umi38901,
            ],
        ),
        carrier_ghz: stream.chance(0.3).then(|| stream.uniform_in(0.7, 30.0)),
        cell_power_dbm: stream.chance(0.3).then(|| stream.uniform_in(20.0, 55.0)),
        sites: pick(stream, &[1, 7]),
        served_sites: 1,
        wrap_around: false,
        neighbour_load: pick(stream, &[0.0, 0.3, 1.0]),
        fading: pick(
            stream,
            &[FadingProfile::None, FadingProfile::Epa, FadingProfile::Eva, FadingProfile::Etu],
        ),
        speed_kmh: pick(stream, &[0.0, 3.0, 120.0, 500.0]),
        blockage: pick(stream, &[BlockageModel::None, BlockageModel::Indoor, BlockageModel::Outdoor]),
        blocker_speed_kmh: pick(stream, &[0.0, 3.0, 60.0]),
        held: pick(stream, &[Held::Free, Held::Portrait, Held::Landscape]),
        station_power_dbm: stream.chance(0.3).then_some(26.0),
        p0_dbm: pick(stream, &[-134.0, -106.0, -85.0, -85.0, -85.0, 31.0]),
        alpha: pick(stream, &[0.0, 0.4, 0.8, 0.8, 0.8, 1.0]),
        tpc_target: stream.chance(0.3).then(|| paceline_net::units::Db(stream.uniform_in(-5.0, 20.0))),
        periodic_phr_timer: Duration::from_millis(pick(stream, &[0, 10, 100, 1000])),
        prohibit_phr_timer: Duration::from_millis(pick(stream, &[0, 20])),
        path_loss_change_db: pick(stream, &[0, 1, 3, 6]),
    });
    let deployment = cells(&mut scenario).deployment.as_mut().unwrap();
    deployment.served_sites = 1 + stream.below(u64::from(deployment.sites)) as u32;
    deployment.wrap_around = deployment.sites > 1 && stream.chance(0.3);
    scenario.run.duration = Duration::from_millis(1500);
    scenario.run.warmup = Duration::from_millis(500);
    let cell = &mut cells(&mut scenario).cell;
    cell.scheduler = pick(stream, &[Scheduler::RoundRobin, Scheduler::ProportionalFair, Scheduler::MaxCi]);
    cell.outer_loop = stream.chance(0.5);
    cell.discard_timer = stream.chance(0.5).then(|| Duration::from_millis(pick(stream, &[50, 100, 300])));
    cell.cqi_period = Duration::from_millis(pick(stream, &[1, 5, 40]));
    cell.cqi_delay = Duration::from_millis(stream.below(41));
    if stream.chance(0.5) {
        cell.rlc = RlcMode::Am;
        cell.max_retx_threshold = pick(stream, &[1, 2, 4, 32]);
        cell.t_poll_retransmit = Duration::from_millis(pick(stream, &[5, 40, 500]));
        cell.t_status_prohibit = Duration::from_millis(pick(stream, &[0, 20, 200]));
        cell.cell_selection = Duration::from_millis(pick(stream, &[0, 50, 400]));
    }
    if stream.chance(0.6) {
        random_drive(stream, &mut scenario);
    }
    scenario
}

/// Lets stations move, and hands them over.
fn random_drive(stream: &mut Stream, scenario: &mut Scenario) {
    for group in &mut scenario.stations {
        let places = stream.below(4);
        let mut metres = || stream.uniform_in(-900.0, 900.0);
        group.path = (0..places).map(|_| Place { x_m: metres(), y_m: metres() }).collect();
        group.path_returns = places > 0 && stream.chance(0.5);
    }
    let ms = |stream: &mut Stream, values: &[u64]| Duration::from_millis(pick(stream, values));
    let trigger = pick(stream, &[HandoverTrigger::EventA3, HandoverTrigger::Scripted, HandoverTrigger::None]);
    let times = if trigger == HandoverTrigger::Scripted { 1 + stream.below(20) } else { 0 };
    cells(scenario).handover = Some(Handover {
        trigger,
        times: (1..=times).map(|at| Duration::from_millis(at * (1400 / times))).collect(),
        a3_offset: paceline_net::units::Db(pick(stream, &[-3.0, 0.0, 3.0])),
        time_to_trigger: ms(stream, &[0, 40, 160]),
        filter_coefficient: pick(stream, &[0, 4, 19]),
        measurement_period: ms(stream, &[10, 40, 200]),
        preparation: ms(stream, &[0, 7, 100]),
        kind: HandoverKind::Nsa,
        interruption: ms(stream, &[0, 1, 22, 200]),
        fate: pick(stream, &[HandoverFate::Drop, HandoverFate::Forward, HandoverFate::Duplicate]),
        status_report: stream.chance(0.5),
        keep_harq: stream.chance(0.5),
        forward_delay: ms(stream, &[0, 5, 50]),
        path_switch: ms(stream, &[0, 20, 300]),
        end_marker: stream.chance(0.7),
        q_out: paceline_net::units::Db(pick(stream, &[-8.0, -8.0, 5.0])),
        q_in: paceline_net::units::Db(pick(stream, &[6.0, 10.0])),
        t310: ms(stream, &[0, 50, 1000]),
        ..Handover::default()
    });
}

/// Random pairs of stations, beside ordinary ones.
pub fn random_pairs(stream: &mut Stream) -> Scenario {
    let mut scenario = random_scenario(stream);
    let unset = Stations::default();
    for group in &mut scenario.stations {
        (group.downlink_sinr, group.uplink_sinr) = (unset.downlink_sinr, unset.uplink_sinr);
        (group.fading, group.coherence) = (unset.fading, unset.coherence);
        group.peer = stream.chance(0.7);
    }
    let path = |stream: &mut Stream| pick(stream, &[SidelinkPath::Direct, SidelinkPath::Infrastructure]);
    let rlc = pick(stream, &[RlcMode::Um, RlcMode::Am]);
    let (data, acks) = (path(stream), path(stream));
    let selection =
        pick(stream, &[SidelinkSelection::Fixed, SidelinkSelection::BestCqi, SidelinkSelection::Scripted]);
    let times = if selection == SidelinkSelection::Scripted { 1 + stream.below(30) } else { 0 };
    let mut sidelink = Sidelink {
        resource_blocks: pick(stream, &[6, 25, 50, 100]),
        data,
        acks: if rlc == RlcMode::Am { data } else { acks },
        selection,
        selection_period: Duration::from_millis(pick(stream, &[50, 200, 1000])),
        hysteresis: stream.below(3) as u8,
        switch_at: (1..=times).map(|at| Duration::from_millis(at * (2900 / times))).collect(),
        fate: pick(stream, &[SidelinkFate::Drop, SidelinkFate::Forward, SidelinkFate::Duplicate]),
        interrupt_harq: stream.chance(0.3),
        rlc,
        trailing_bsr: pick(stream, &[TrailingReport::Backlog, TrailingReport::Always, TrailingReport::Never]),
        rac_timeout: Duration::from_millis(1 + stream.below(30)),
        max_harq_tx: 1 + stream.below(8) as u32,
        reuse_threshold_dbm: stream.chance(0.4).then(|| stream.uniform_in(-140.0, -60.0)),
        buffer: Bytes(pick(stream, &[1_504, 20_000, 2_000_000])),
        enb_distance_m: stream.uniform_in(50.0, 2_000.0),
        distance_m: stream.uniform_in(1.0, 90.0),
        movement: pick(stream, &[Movement::Standing, Movement::Line, Movement::BackAndForth]),
        far_distance_m: 100.0,
        speed_mps: stream.uniform_in(0.0, 60.0),
        cqi_margin_db: pick(stream, &[0.0, 10.0]),
        ..Sidelink::default()
    };
    let carrier = stream.chance(0.4).then(|| random_nr_pairs(stream, &mut sidelink));
    let ack_filter = cells(&mut scenario).ack_filter.clone();
    scenario.access = Access::Pairs(Box::new(Pairs { sidelink, carrier, ack_filter }));
    if !scenario.has_core() {
        scenario.core = scenario::Core { hops: Vec::new(), ..scenario::Core::default() };
    }
    scenario
}

/// A carrier of pairs in NR.
fn random_nr_pairs(stream: &mut Stream, table: &mut Sidelink) -> Cell {
    let text = "[cell]\nrat = \"nr\"\nbandwidth = \"20 MHz\"\n[[station]]\n";
    let sr = pick(stream, &["5 ms", "10 ms", "20 ms"]);
    let mut set = vec![format!("cell.sr_period={sr}")];
    match stream.below(5) {
        0 => set.push("cell.pattern=DDDSU".into()),
        1 => set.push("cell.pattern=DDDSUUDDDD".into()),
        2 => set.extend(["cell.numerology=2".into(), "cell.frequency=2.6 GHz".into()]),
        3 => set.extend(["cell.numerology=1".into(), "cell.nr.uplink_mcs_table=qam64".into()]),
        _ => {}
    }
    table.resource_blocks = Sidelink::default().resource_blocks;
    table.subchannel = stream.chance(0.5).then(|| pick(stream, &[10, 12, 15, 20]));
    table.psfch_period = stream.chance(0.5).then(|| pick(stream, &[1, 2, 4]));
    scenario::load("swarm.toml", text, &set).unwrap().cell().unwrap().clone()
}

pub fn random_link(stream: &mut Stream) -> Link {
    let percent = |stream: &mut Stream| if stream.chance(0.4) { stream.uniform_in(0.0, 8.0) } else { 0.0 };
    let mut link = Link {
        per_station: stream.chance(0.5).then(|| stream.chance(0.5)),
        delay: stream.chance(0.7).then(|| Duration::from_micros(stream.below(60_000))),
        ecn_threshold: stream.chance(0.3).then_some(Bytes(1_500)),
        loss_percent: percent(stream),
        burst_loss_percent: percent(stream),
        burst_packets: 1.0 + stream.uniform_in(0.0, 30.0),
        jitter: Duration::from_micros(pick(stream, &[0, 0, 500, 20_000])),
        duplicate_percent: percent(stream),
        reorder_percent: percent(stream),
        reorder_delay: Duration::from_micros(stream.below(30_000)),
        ..Link::default()
    };
    if stream.chance(0.3) {
        link.queue_discipline = pick(stream, &[QueueDiscipline::Codel, QueueDiscipline::FqCodel]);
        link.ecn_threshold = None;
    }
    match stream.below(3) {
        0 => link.queue = Some(Bytes(1_504 + stream.below(300_000))),
        1 => link.queue_packets = Some(1 + stream.below(200)),
        _ => {}
    }
    let rate = |stream: &mut Stream| Rate(200_000 + stream.below(60_000_000));
    let channel = |stream: &mut Stream, of: Cellular| Cellular {
        rate_sigma: pick(stream, &[0.0, 0.3, 2.0]),
        load_loss_percent: pick(stream, &[0.0, 10.0, 99.0]),
        congested_share: pick(stream, &[0.001, 0.5, 1.0]),
        ..of
    };
    match stream.below(4) {
        0 => {
            link.fixed = Some(FixedLink {
                downlink_rate: rate(stream),
                uplink_rate: stream.chance(0.7).then(|| rate(stream)),
                frame: Duration::from_micros(pick(stream, &[0, 0, 5_000, 10_000])),
                interruption: Duration::from_millis(pick(stream, &[0, 0, 50, 400])),
                interruption_interval: Duration::from_millis(1 + stream.below(1_000)),
            });
        }
        1 => {
            let (name, trace) = (String::from("random.trace"), None);
            let file = TraceFile { name, trace };
            let uplink = stream.chance(0.5).then(|| file.clone());
            let uplink_rate = uplink.is_none().then(|| rate(stream));
            let sr_period = stream.chance(0.3).then(|| Duration::from_millis(pick(stream, &[1, 5, 40])));
            let grant_delay = sr_period.map(|_| Duration::from_micros(stream.below(10_000)));
            link.trace = Some(TraceLink { downlink: file, uplink, uplink_rate, sr_period, grant_delay });
        }
        2 => link.hspa = Some(channel(stream, Cellular::hspa())),
        _ => link.lte_early = Some(channel(stream, Cellular::lte_early())),
    }
    link
}
