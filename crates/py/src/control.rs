//! A congestion control in Python.
//!
//! The methods of an object are called from the threads that simulate, one at a time under the interpreter's
//! lock. The first exception ends all runs.

use paceline_net::{Bytes, Duration, Instant, Rate};
use paceline_tcp::{AckSample, CongestionControl, CongestionEvent, ControlParameters, OwnControl};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The window of a control without one, in bytes. Chosen: beyond every send buffer.
const UNLIMITED: f64 = (1_u64 << 40) as f64;
/// The least pacing rate in bit/s. Chosen: a segment of 1,448 bytes leaves within twelve seconds.
const LEAST_RATE: f64 = 1000.0;

/// The first exception of a control, and the threads that call controls.
#[derive(Clone, Default)]
pub struct Failure {
    error: Arc<Mutex<Option<PyErr>>>,
    /// Identifiers of `threading.get_ident`.
    threads: Arc<Mutex<BTreeSet<u64>>>,
}

impl Failure {
    fn set(&self, error: PyErr) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
    /// The exception, if there was one.
    pub fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
    /// Whether there was one.
    pub fn is_set(&self) -> bool {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
    fn add_thread(&self, py: Python<'_>) -> PyResult<()> {
        let thread = py.import("threading")?.call_method0("get_ident")?.extract()?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).insert(thread);
        Ok(())
    }
    /// Raises `KeyboardInterrupt` in the controls that are being called: one that loops for ever ends by it.
    pub fn interrupt(&self, py: Python<'_>) -> PyResult<()> {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if threads.is_empty() {
            return Ok(());
        }
        let ctypes = py.import("ctypes")?;
        let exception = ctypes.getattr("py_object")?.call1((py.get_type::<PyKeyboardInterrupt>(),))?;
        for thread in threads {
            let thread = ctypes.getattr("c_ulong")?.call1((thread,))?;
            let raise = ctypes.getattr("pythonapi")?.getattr("PyThreadState_SetAsyncExc")?;
            raise.call1((thread, &exception))?;
        }
        Ok(())
    }
}

/// Controls that `class(mss, initial_window)` makes.
pub fn controls(class: Py<PyAny>, failure: &Failure) -> OwnControl {
    let failure = failure.clone();
    OwnControl::new(move |parameters| PythonControl::new(&class, parameters, &failure))
}

/// The control of one connection.
struct PythonControl {
    /// None after an exception.
    object: Option<Py<PyAny>>,
    per_ack: bool,
    per_round: bool,
    on_loss: bool,
    cwnd: Bytes,
    pacing_rate: Option<Rate>,
    /// The next round trip begins when data above this offset is acknowledged.
    round_ends: u64,
    failure: Failure,
}

impl PythonControl {
    fn new(class: &Py<PyAny>, parameters: &ControlParameters, failure: &Failure) -> Self {
        let mut control = Self {
            object: None,
            per_ack: false,
            per_round: false,
            on_loss: false,
            cwnd: Bytes(u64::from(parameters.mss) * u64::from(parameters.initial_window)),
            pacing_rate: None,
            round_ends: 0,
            failure: failure.clone(),
        };
        let made = Python::attach(|py| {
            failure.add_thread(py)?;
            let object = class.bind(py).call1((parameters.mss, parameters.initial_window))?;
            let has = |name: &str| object.hasattr(name);
            (control.per_ack, control.per_round) = (has("on_ack")?, has("on_round")?);
            control.on_loss = has("on_loss")?;
            control.read(&object)?;
            Ok(object.unbind())
        });
        match made {
            Ok(object) => control.object = Some(object),
            Err(error) => failure.set(error),
        }
        control
    }
    /// Takes over window and pacing rate.
    fn read(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let cwnd: f64 = object.getattr("cwnd")?.extract()?;
        if cwnd.is_nan() || cwnd < 1.0 {
            return Err(PyValueError::new_err(format!(
                "cwnd = {cwnd}: allowed: 1 byte or more, or infinity"
            )));
        }
        self.cwnd = Bytes(cwnd.min(UNLIMITED) as u64);
        let rate: Option<f64> = match object.getattr_opt("pacing_rate")? {
            Some(rate) => rate.extract()?,
            None => None,
        };
        if let Some(rate) = rate.filter(|rate| rate.is_nan() || *rate < LEAST_RATE) {
            let allowed = "allowed: 1000 b/s or more, infinity or None for no pacing";
            return Err(PyValueError::new_err(format!("pacing_rate = {rate}: {allowed}")));
        }
        self.pacing_rate = rate.filter(|rate| rate.is_finite()).map(|rate| Rate(rate as u64));
        Ok(())
    }
    fn call(&mut self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        let Some(object) = self.object.take() else { return };
        let called = Python::attach(|py| {
            let bound = object.bind(py);
            call(bound)?;
            self.read(bound)
        });
        match called {
            Ok(()) => self.object = Some(object),
            Err(error) => self.failure.set(error),
        }
    }
}

fn ack<'py>(py: Python<'py>, now: Instant, sample: &AckSample) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    let seconds = |time: Option<Duration>| time.map(Duration::as_secs_f64);
    fields.set_item("time", now.since(Instant::ZERO).as_secs_f64())?;
    fields.set_item("acked", sample.acked.0)?;
    fields.set_item("lost", sample.lost.0)?;
    fields.set_item("rtt", seconds(sample.rtt))?;
    fields.set_item("srtt", seconds(sample.srtt))?;
    fields.set_item("min_rtt", seconds(sample.min_rtt))?;
    fields.set_item("in_flight", sample.in_flight.0)?;
    fields.set_item("delivered", sample.delivered.0)?;
    fields.set_item("delivery_rate", sample.rate.rate().map(|rate| rate.0))?;
    fields.set_item("ce_bytes", sample.ce_bytes.0)?;
    fields.set_item("cwnd_limited", sample.cwnd_limited)?;
    Ok(fields)
}

impl Clone for PythonControl {
    fn clone(&self) -> Self {
        let object = Python::attach(|py| self.object.as_ref().map(|object| object.clone_ref(py)));
        Self { object, failure: self.failure.clone(), ..*self }
    }
}

impl std::fmt::Debug for PythonControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PythonControl").field("cwnd", &self.cwnd).finish_non_exhaustive()
    }
}

impl CongestionControl for PythonControl {
    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        let round = self.per_round && sample.advanced && sample.snd_una > self.round_ends;
        if round {
            self.round_ends = sample.snd_nxt;
        }
        if !self.per_ack && !round {
            return;
        }
        let per_ack = self.per_ack;
        self.call(|object| {
            let fields = ack(object.py(), now, sample)?;
            if per_ack {
                object.call_method1("on_ack", (&fields,))?;
            }
            if round {
                object.call_method1("on_round", (&fields,))?;
            }
            Ok(())
        });
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, _in_flight: Bytes) {
        let name = match event {
            CongestionEvent::FastRecovery => "loss",
            CongestionEvent::RecoveryEnd => "recovered",
            CongestionEvent::Timeout | CongestionEvent::RepeatedTimeout => "timeout",
            CongestionEvent::Undo => "spurious",
            CongestionEvent::Ecn => "ecn",
        };
        if self.on_loss {
            self.call(|object| object.call_method1("on_loss", (name,)).map(drop));
        }
    }
    fn cwnd(&self) -> Bytes {
        self.cwnd
    }
    fn ssthresh(&self) -> Bytes {
        Bytes(u64::MAX)
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }
}
