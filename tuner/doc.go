// Package tuner is the service: studies that can be asked and told.
package tuner
