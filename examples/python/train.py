"""Trains a small network on two moons, as a worker of BKB Tuner. See README.md.

    python train.py ADDRESS STUDY [TRIALS]

It creates the study if it does not exist. It asks for a configuration, trains, and reports
the error after every epoch. It stops a trial when the tuner says so, tells the result, and
asks again until the study has finished. Several workers can share a study. It needs only
grpcio.
"""
import math, os, random, sys, time, uuid
import grpc
import tuner_pb2 as pb, tuner_pb2_grpc as rpc

EPOCHS, ROWS = 10, 100
SPACE = """
version: 1
parameters:
  lr:    {type: float, low: 1e-3, high: 3, scale: log}
  width: {type: int, low: 2, high: 16, scale: log}
  decay: {type: float, low: 1e-6, high: 0.1, scale: log}
  activation: {type: categorical, values: [tanh, relu]}
"""


def two_moons(n, rng):
    rows = []
    for i in range(n):
        t, upper = math.pi * rng.random(), i % 2
        x, y = (math.cos(t), math.sin(t)) if upper else (1 - math.cos(t), 0.5 - math.sin(t))
        rows.append((x + rng.gauss(0, 0.15), y + rng.gauss(0, 0.15), 1 if upper else -1))
    return rows


def epochs(config, train, validation, rng):
    """Yields the logistic loss on the validation rows after every epoch."""
    width, lr, decay = config["width"].int_value, config["lr"].float_value, config["decay"].float_value
    relu = config["activation"].string_value == "relu"
    hidden = [[rng.gauss(0, 1) for _ in range(3)] for _ in range(width)]
    out = [rng.gauss(0, 1 / math.sqrt(width)) for _ in range(width)]

    def forward(x, y):
        sums = [w[0] * x + w[1] * y + w[2] for w in hidden]
        units = [max(s, 0) for s in sums] if relu else [math.tanh(s) for s in sums]
        return units, sum(a * u for a, u in zip(out, units))

    def logistic(margin):
        return math.log1p(math.exp(-margin)) if margin > -30 else -margin

    for _ in range(EPOCHS):
        rng.shuffle(train)
        for x, y, label in train:
            units, f = forward(x, y)
            slope = -label / (1 + math.exp(min(label * f, 30)))
            for j, u in enumerate(units):
                inner = slope * out[j] * ((u > 0) if relu else 1 - u * u)
                out[j] -= lr * (slope * u + decay * out[j])
                for i, v in enumerate((x, y, 1)):
                    hidden[j][i] -= lr * (inner * v + decay * hidden[j][i])
        yield sum(logistic(label * forward(x, y)[1]) for x, y, label in validation) / len(validation)


class Worker:
    """A worker of one study. Every call has a request id, so it can be sent again."""

    def __init__(self, address, study):
        if address.startswith("unix:"):  # on this machine, without TLS, and with a token only if the server needs one
            channel = grpc.insecure_channel(address)
        else:
            with open(os.environ["TUNER_CA"], "rb") as f:
                channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(f.read()))
        self.stub, self.study, self.name = rpc.TunerStub(channel), study, f"train-{uuid.uuid4()}"
        token = os.environ.get("TUNER_TOKEN")
        self.policy = dict(metadata=[("authorization", "Bearer " + token)] if token else None, timeout=60, wait_for_ready=True)

    def call(self, method, request):
        for attempt in range(5):
            try:
                return method(request, **self.policy)
            except grpc.RpcError as e:
                if attempt == 4 or e.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNKNOWN):
                    raise
                time.sleep(2**attempt)

    def create(self, trials):
        spec = pb.StudySpec(
            space=SPACE, objectives=[pb.Objective(name="loss", direction=pb.DIRECTION_MINIMIZE)], max_trials=trials, max_retries=3,
            pruner=pb.Component(name="median", options='{"warmup_steps": 2, "min_trials": 4}'))
        try:
            self.call(self.stub.CreateStudy, pb.CreateStudyRequest(request_id=str(uuid.uuid4()), study_id=self.study, spec=spec))
        except grpc.RpcError as e:
            if e.code() != grpc.StatusCode.ALREADY_EXISTS:
                raise

    def ask(self):
        """Returns a trial, or None when the study has finished."""
        while True:
            try:
                request = pb.AskRequest(request_id=str(uuid.uuid4()), parent="studies/" + self.study, worker=self.name)
                return self.call(self.stub.Ask, request).trials[0]
            except grpc.RpcError as e:
                if e.code() != grpc.StatusCode.FAILED_PRECONDITION:
                    raise
            view = self.call(self.stub.GetStudy, pb.GetStudyRequest(name="studies/" + self.study))
            if view.state == pb.STUDY_STATE_FINISHED:
                return None
            time.sleep(1)  # other workers run the last trials

    def should_stop(self, trial, step, loss):
        report = pb.IntermediateValues(step=step, values={"loss": loss})
        return self.call(self.stub.Report, pb.ReportRequest(
            request_id=str(uuid.uuid4()), name=trial.name, epoch=trial.epoch, reports=[report])).should_stop

    def tell(self, trial, outcome):
        self.call(self.stub.Tell, pb.TellRequest(request_id=str(uuid.uuid4()), name=trial.name, epoch=trial.epoch, outcome=outcome))


def run(worker, trial):
    rng = random.Random(1)
    train, validation = two_moons(ROWS, rng), two_moons(ROWS, rng)
    for step, loss in enumerate(epochs(trial.config, train, validation, rng), 1):
        if not math.isfinite(loss):
            return pb.Outcome(state=pb.TRIAL_STATE_INFEASIBLE, message="diverged")
        if worker.should_stop(trial, step, loss):
            return pb.Outcome(state=pb.TRIAL_STATE_PRUNED, message=f"stopped at epoch {step}")
    return pb.Outcome(state=pb.TRIAL_STATE_COMPLETED, metrics={"loss": pb.Metric(values=[loss])})


worker = Worker(sys.argv[1], sys.argv[2])
worker.create(trials=int(sys.argv[3]) if len(sys.argv) > 3 else 30)
while trial := worker.ask():
    worker.tell(trial, run(worker, trial))
found = worker.call(worker.stub.GetBest, pb.GetBestRequest(parent="studies/" + sys.argv[2])).trials
if not found:
    sys.exit("no trial completed")
best = found[0]
print(f"{best.name}: loss {best.outcome.metrics['loss'].values[0]:.4f}, {dict((k, getattr(v, v.WhichOneof('kind'))) for k, v in best.config.items())}")
