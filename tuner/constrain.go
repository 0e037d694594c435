package tuner

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Constrain adds a limit of a metric, such as "latency <= 10", to the options of a
// proposer. A limit replaces the one on the same side.
func Constrain(c *study.Component, text string) error {
	metric, side, limit, err := parseConstraint(text)
	if err != nil {
		return err
	}
	if c.Name == "" {
		c.Name = DefaultProposer
	}
	if c.Name != DefaultProposer {
		return fmt.Errorf("%q: the proposer %s does not model metrics; use the proposer bkb", text, c.Name)
	}
	options := make(map[string]json.RawMessage)
	if c.Options != "" {
		if err := json.Unmarshal([]byte(c.Options), &options); err != nil {
			return fmt.Errorf("%q: the options %.60q are not a JSON object: %w", text, c.Options, err)
		}
	}
	limits := make(map[string]map[string]json.RawMessage)
	if raw, ok := options["constraints"]; ok {
		if err := json.Unmarshal(raw, &limits); err != nil {
			return fmt.Errorf("%q: the option constraints = %.60s is not an object of limits; write {\"latency\": {\"max\": 10}}", text, raw)
		}
	}
	if limits[metric] == nil {
		limits[metric] = make(map[string]json.RawMessage)
	}
	limits[metric][side] = json.RawMessage(limit)
	if options["constraints"], err = json.Marshal(limits); err != nil {
		return err
	}
	line, err := json.Marshal(options)
	c.Options = string(line)
	return err
}

// parseConstraint reads "metric <= number" or "metric >= number".
func parseConstraint(text string) (metric, side, limit string, err error) {
	for _, sign := range []struct{ text, side string }{{"<=", "max"}, {">=", "min"}, {"≤", "max"}, {"≥", "min"}} {
		name, number, found := strings.Cut(text, sign.text)
		if !found {
			continue
		}
		if metric = strings.TrimSpace(name); metric == "" {
			return "", "", "", fmt.Errorf("%q: there is no metric before %s; write \"latency %s 10\"", text, sign.text, sign.text)
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			return "", "", "", fmt.Errorf("%q: %q is not a finite number; write \"%s %s 10\"", text, strings.TrimSpace(number), metric, sign.text)
		}
		return metric, sign.side, fmt.Sprint(v), nil
	}
	return "", "", "", fmt.Errorf("%q: must be a metric, <= or >=, and a number; write \"latency <= 10\"", text)
}
