package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// The parts of the OCI image format that are used here. See
// https://github.com/opencontainers/image-spec.
type (
	descriptor struct {
		MediaType string            `json:"mediaType"`
		Digest    string            `json:"digest"`
		Size      int               `json:"size"`
		Platform  map[string]string `json:"platform,omitempty"`
		Notes     map[string]string `json:"annotations,omitempty"`
	}
	index struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        *descriptor  `json:"config,omitempty"`    // of a manifest
		Layers        []descriptor `json:"layers,omitempty"`    // of a manifest
		Manifests     []descriptor `json:"manifests,omitempty"` // of an index
	}
)

const (
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
)

// image is the file system of a container by its architecture: the program, and its licences.
type image struct {
	arch  string
	files []file
}

// layout writes images as one OCI archive and returns the digest of their index, which is what
// a registry calls the image. It agrees with deploy/Dockerfile, and has the licences too.
func layout(w io.Writer, v version, images []image) (digest string, err error) {
	t := tar.NewWriter(w)
	add := func(name string, data []byte) error {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o644, ModTime: v.time, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err := t.Write(data)
		return err
	}
	blob := func(media string, data []byte) (descriptor, error) {
		sum := sha256.Sum256(data)
		name := hex.EncodeToString(sum[:])
		return descriptor{MediaType: media, Digest: "sha256:" + name, Size: len(data)}, add("blobs/sha256/"+name, data)
	}
	object := func(media string, value any) (descriptor, error) {
		text, err := json.Marshal(value)
		if err != nil {
			return descriptor{}, err
		}
		return blob(media, text)
	}
	all := index{SchemaVersion: 2, MediaType: mediaIndex}
	for _, i := range images {
		plain, err := layer(v.time, i.files)
		if err != nil {
			return "", err
		}
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return "", err
		}
		if _, err := z.Write(plain); err != nil {
			return "", err
		}
		if err := z.Close(); err != nil {
			return "", err
		}
		stored, err := blob("application/vnd.oci.image.layer.v1.tar+gzip", packed.Bytes())
		if err != nil {
			return "", err
		}
		config, err := object("application/vnd.oci.image.config.v1+json", map[string]any{
			"created": v.time.Format(time.RFC3339), "architecture": i.arch, "os": "linux",
			"config": map[string]any{
				"User": "65532:65532", "WorkingDir": "/data", "Entrypoint": []string{"/tuner"},
				"ExposedPorts": map[string]any{"7070/tcp": struct{}{}}, "Volumes": map[string]any{"/data": struct{}{}},
				"Cmd": []string{
					"serve", "--db", "/data/tuner.db", "--listen", "0.0.0.0:7070",
					"--cert", "/tls/tls.crt", "--key", "/tls/tls.key", "--tokens", "/tokens/tokens.json",
				},
				"Labels": map[string]string{
					"org.opencontainers.image.source": "https://" + product, "org.opencontainers.image.revision": v.commit,
					"org.opencontainers.image.version": v.name, "org.opencontainers.image.licenses": "Apache-2.0",
				},
			},
			"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(plain))}},
			"history": []map[string]string{{"created": v.time.Format(time.RFC3339), "created_by": "tools/release"}},
		})
		if err != nil {
			return "", err
		}
		manifest, err := object(mediaManifest, index{SchemaVersion: 2, MediaType: mediaManifest, Config: &config, Layers: []descriptor{stored}})
		if err != nil {
			return "", err
		}
		manifest.Platform = map[string]string{"os": "linux", "architecture": i.arch}
		all.Manifests = append(all.Manifests, manifest)
	}
	top, err := object(mediaIndex, all)
	if err != nil {
		return "", err
	}
	digest = top.Digest
	top.Notes = map[string]string{"org.opencontainers.image.ref.name": v.name}
	entry, err := json.Marshal(index{SchemaVersion: 2, MediaType: mediaIndex, Manifests: []descriptor{top}})
	if err != nil {
		return "", err
	}
	return digest, errors.Join(add("index.json", entry), add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)), t.Close())
}

// layer returns the tar of the files, and of the folder /data, which the user of the
// container may write to.
func layer(mtime time.Time, files []file) ([]byte, error) {
	files, err := sorted(files)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "data/", Mode: 0o755, Uid: 65532, Gid: 65532, ModTime: mtime, Format: tar.FormatUSTAR}); err != nil {
		return nil, err
	}
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.data)), Mode: f.mode(), ModTime: mtime, Format: tar.FormatUSTAR}
		if len(h.Name) > 100 {
			h.Format = tar.FormatPAX
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), t.Close()
}
