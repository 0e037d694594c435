// Package optuna keeps studies of Optuna in the store. [Face] serves the storage protocol
// of Optuna (optuna.storages.GrpcStorageProxy), so that scripts and dashboards of Optuna
// use the store in place of a database.
//
// # How a study lies in the store
//
// Each study of Optuna is a study of the store. Its log holds one event of the kind
// [study.Foreign] for each call that changed something. [State] is the fold of these
// events. A call returns when its event is on disk.
//
// The name of a study of Optuna can be any text. In the store it is the name that
// [StoreName] derives, such as optuna.digits. The id of a study is its id in the store,
// which is never given again. The id of a trial is id·2³² + number, which JavaScript
// represents exactly for two million studies.
//
// # What the protocol lacks
//
// Its clients send no token and use no TLS. They do not retry, and their requests have no
// id. If the answer to a new trial is lost, the trial runs for ever. The protocol has no
// heartbeats either. [Face.FailStale] ends such trials.
//
// A client keeps finished trials and asks only for trials after the last finished one. So
// a finished trial never changes, and trials appear in order of their ids.
//
// # Costs
//
// A finished trial is kept as it is sent, so an answer with all trials copies bytes. A
// trial of TPE with two parameters takes about 0.5 kB in memory.
package optuna
