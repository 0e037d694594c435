"""A peer for tests of the driver; its name says how it behaves."""
import json
import sys
import time

name, told = sys.argv[1], None
for line in sys.stdin:
    m = json.loads(line)
    if m["op"] == "start":
        start = m
        answer = {"unsupported": "colours", "missing": "a package"}
        answer = {name: answer[name]} if name in answer else {"ok": True, "version": "test 1.0"}
    elif m["op"] == "tell":
        told, answer = m, {"ok": True}
    elif name == "dies":
        print("x" * 10_000 + "\nthe last words", file=sys.stderr)
        sys.exit(3)
    elif name == "refuses":
        print("Traceback …", file=sys.stderr)
        answer = {"error": "ValueError: no"}
    elif name == "sleeps":
        time.sleep(600)
    elif name == "babbles":
        print("no JSON")
        sys.stdout.flush()
        continue
    elif name == "strays":
        answer = {"config": {"x": 2.5}, "seconds": 0}
    elif not told:
        answer = {"config": {"x": start["seed"] / 100}, "seconds": start["trials"]}
    elif isinstance(told.get("value"), list):
        answer = {"config": {"x": told["value"][1] if told["ok"] else 0.5}, "seconds": told["value"][0]}
    elif "metrics" in told:
        answer = {"config": {"x": told["metrics"][0] if not told["ok"] else told["metrics"][1]}, "seconds": told["value"]}
    else:
        value = told["value"] if told["ok"] else 0.125 if "value" not in told else -1
        answer = {"config": {"x": value}, "seconds": told["config"]["x"]}
    print(json.dumps(answer), flush=True)
