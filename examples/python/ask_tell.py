"""Minimises (x - 2)^2 + n with BKB Tuner over gRPC. See README.md."""
import os, sys, uuid
import grpc
import tuner_pb2 as pb, tuner_pb2_grpc as rpc

address, study, trials = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(os.environ["TUNER_CA"], "rb") as f:
    channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(f.read()))
auth = [("authorization", "Bearer " + os.environ["TUNER_TOKEN"])]
policy = dict(metadata=auth, timeout=60, wait_for_ready=True)
tuner = rpc.TunerStub(channel)
name = "studies/" + study

space = """
version: 1
parameters:
  x: {type: float, low: -5.0, high: 5.0}
  n: {type: int, low: 0, high: 3}
"""
spec = pb.StudySpec(space=space, objectives=[pb.Objective(name="loss", direction=pb.DIRECTION_MINIMIZE)])
tuner.CreateStudy(pb.CreateStudyRequest(request_id=str(uuid.uuid4()), study_id=study, spec=spec), **policy)

for _ in range(trials):
    asked = tuner.Ask(pb.AskRequest(request_id=str(uuid.uuid4()), parent=name), **policy)
    trial = asked.trials[0]
    x, n = trial.config["x"].float_value, trial.config["n"].int_value
    outcome = pb.Outcome(state=pb.TRIAL_STATE_COMPLETED, metrics={"loss": pb.Metric(values=[(x - 2) ** 2 + n])})
    tuner.Tell(pb.TellRequest(request_id=str(uuid.uuid4()), name=trial.name, epoch=trial.epoch, outcome=outcome), **policy)

best = tuner.GetBest(pb.GetBestRequest(parent=name), **policy).trials[0]
print(f"{best.name}: loss {best.outcome.metrics['loss'].values[0]:.6g} at x = {best.config['x'].float_value:.6g}, n = {best.config['n'].int_value}")
