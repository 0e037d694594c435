package katib

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// AccountDir is where Kubernetes puts the service account of a pod.
const AccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Cluster changes trials of Katib through the API server of Kubernetes.
type Cluster struct {
	server    string // its URL
	namespace string
	tokenFile string // read for each call, because Kubernetes renews it
	client    *http.Client
	now       func() time.Time
}

// InCluster returns the cluster that this process is a pod of. It reads the service account
// in a folder, [AccountDir], and the address from the environment.
func InCluster(dir string) (*Cluster, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, because this process is not in a pod; start it in a pod of Katib")
	}
	namespace, err := os.ReadFile(filepath.Join(dir, "namespace"))
	if err != nil {
		return nil, fmt.Errorf("reading the service account of the pod: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the service account of the pod: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s has no certificate in PEM", filepath.Join(dir, "ca.crt"))
	}
	return &Cluster{
		server: "https://" + net.JoinHostPort(host, port), namespace: strings.TrimSpace(string(namespace)), tokenFile: filepath.Join(dir, "token"),
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}},
		now:    time.Now,
	}, nil
}

type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason,omitempty"`
	Message            string `json:"message,omitempty"`
	LastUpdateTime     string `json:"lastUpdateTime,omitempty"`
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
}

const earlyStopped = "EarlyStopped"

// trial is the part of a trial that Stop reads and writes. The version of its metadata lets
// the API server refuse a change of what it no longer has.
type trial struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// Stop adds the condition EarlyStopped to a trial, unless it has it. If another program
// changes the trial in the meantime, it tries again.
func (c *Cluster) Stop(ctx context.Context, name string) error {
	if name == "" || strings.ContainsAny(name, "/?#") {
		return errors.New("it is not the name of a trial")
	}
	at := c.server + "/apis/kubeflow.org/v1beta1/namespaces/" + url.PathEscape(c.namespace) + "/trials/" + url.PathEscape(name)
	var err error
	for range 5 {
		var t trial
		if _, err = c.call(ctx, http.MethodGet, at, nil, &t); err != nil {
			return err
		}
		now := c.now().UTC().Format(time.RFC3339)
		for _, have := range t.Status.Conditions {
			if have.Type == earlyStopped && have.Status == "True" {
				return nil
			}
		}
		t.Status.Conditions = append(t.Status.Conditions, condition{
			earlyStopped, "True", "TrialEarlyStopped", "The median rule stopped the trial", now, now,
		})
		var code int
		if code, err = c.call(ctx, http.MethodPatch, at+"/status", t, nil); err == nil || code != http.StatusConflict {
			return err
		}
	}
	return err
}

func (c *Cluster) call(ctx context.Context, method, at string, body, answer any) (code int, err error) {
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return 0, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	token, err := os.ReadFile(c.tokenFile)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := c.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return response.StatusCode, err
	}
	if response.StatusCode != http.StatusOK {
		var refusal struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(text, &refusal) // the code is enough without a message
		return response.StatusCode, fmt.Errorf("%s %s: %s: %s", method, at, response.Status, refusal.Message)
	}
	if answer == nil {
		return response.StatusCode, nil
	}
	return response.StatusCode, json.Unmarshal(text, answer)
}
