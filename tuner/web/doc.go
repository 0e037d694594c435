// Package web serves the methods of proto/tuner/v1 in JSON over HTTP, the tools of agents, a
// page for browsers, and probes.
//
//	POST /tuner.v1.Tuner/METHOD    a call
//	POST /mcp                      a request of an agent, see package mcp
//	GET  /                         the page, and /studies/… within it
//	GET  /healthz                  200 while the process answers
//	GET  /readyz                   200 while the server serves, 503 before and after
//
// docs/http.md describes the protocol for callers. The face is a client of the server through
// [server.Pipe], and has no rules of its own about who may do what. A request passes these steps.
//
//	Origin and Host → content type → the server's gate → body → JSON → pipe
//
// # Browsers
//
// A web page can make a browser send requests to a server on the same machine. Three rules
// keep it from calling the service.
//
//   - A call has the content type application/json. A page of another origin needs a
//     permission of CORS for that, which this package never gives.
//   - A request that a browser marks as cross-site, or that has the Origin of another
//     site, is refused.
//   - A listener on loopback takes only requests whose Host is localhost or an IP address.
//     So the name of a foreign site that resolves to 127.0.0.1 is of no use.
//
// # Page
//
// The page shows studies and acts on them. Its files are embedded as they are, without a
// build, and are served below a path with their hash, so browsers keep them. It calls the
// methods like any other caller, and has a private API for what they do not serve well.
//
//	POST /api/login, /api/logout         a session for a token
//	POST /api/space                      faults, advice and samples of a search space
//	GET  /api/methods                    proposers and pruners with their options
//	GET  /api/backup                     a backup as a file
//	GET  /api/studies/STUDY/columns      trials as columns of numbers, all or the changed
//	GET  /api/studies/STUDY/events       server-sent events about a study
//
// A login turns a token into a random session id in a cookie that scripts cannot read.
// The token stays in the memory of the server. Calls with the cookie are calls with the
// token, so a revoked token ends its sessions. With [Options].Key the face answers only
// sessions that showed the key, which guards a server without tokens.
//
// [WriteFile] writes the page of a study with its data into one document. There the module
// offline.js stands in for api.js.
//
// The face speaks HTTP/1.1. Reading a body and writing each 64 KiB of an answer have a limit of
// time. Streams have one JSON object a line, and an empty line after 15 seconds of silence.
package web
