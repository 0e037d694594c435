"""Files of trials on the server's disk."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from ._codec import JSON, encode_int
from ._errors import DataDamaged, Error, InvalidRequest
from ._options import Path
from ._transport import new_request_id
from ._views import Artifact

if TYPE_CHECKING:
    from pathlib import Path as LocalPath

    from ._transport import Transport

PART = 512 << 10  # bytes, the most of a call


def upload(transport: Transport, trial: str, path: Path, name: str | None) -> Artifact:
    """Store a file whole or not at all."""
    import base64
    import hashlib

    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidRequest(f"{os.fspath(path)!r} is no file, put a folder into an archive first")
    with open(path, "rb") as f:
        size, sent, checksum = os.fstat(f.fileno()).st_size, 0, hashlib.sha256()
        target = {"name": trial, "file": os.path.basename(path) if name is None else name}
        request: JSON = {**target, "uploadId": new_request_id(), "size": encode_int(size)}
        try:
            while True:
                data = f.read(min(PART, size - sent))
                if not data and sent < size:
                    raise InvalidRequest(f"{os.fspath(path)!r} became shorter while it was read")
                checksum.update(data)
                request["offset"], sent = encode_int(sent), sent + len(data)
                request["data"] = base64.b64encode(data).decode()
                if sent == size:
                    request["sha256"] = checksum.hexdigest()
                answer = transport.call_identified("WriteArtifact", request)
                if sent == size:
                    return Artifact.decode(answer["artifact"])
        except BaseException:
            with contextlib.suppress(Error):  # else it goes after a day
                given_up = {**target, "uploadId": request["uploadId"]}
                transport.call("DeleteArtifact", given_up, retry_for=0.0)
            raise


def artifacts(transport: Transport, trial: str) -> list[Artifact]:
    """Return the artifacts of a trial in order of name."""
    found = transport.call("ListArtifacts", {"parent": trial}).get("artifacts", [])
    return [Artifact.decode(m) for m in found]


def download(transport: Transport, trial: str, name: str, path: Path | None) -> LocalPath:
    """Write an artifact to a file, whole or not at all."""
    import base64
    import hashlib
    from pathlib import Path as LocalPath

    request: JSON = {"name": trial, "file": name}
    answer = transport.call("ReadArtifact", request)  # refuses a name that leads elsewhere
    artifact, checksum, got = Artifact.decode(answer["artifact"]), hashlib.sha256(), 0
    target = LocalPath(name if path is None else path)
    if target.is_dir():
        target /= name
    with open(target.with_name(f".{new_request_id()}"), "xb") as f:
        try:
            while True:
                data = base64.b64decode(answer.get("data", ""))
                f.write(data)
                checksum.update(data)
                got += len(data)
                if got >= artifact.size or not data:
                    break
                request.update(sha256=artifact.sha256, offset=encode_int(got))
                answer = transport.call("ReadArtifact", request)
            if checksum.hexdigest() != artifact.sha256:
                raise DataDamaged(f"artifact {name!r} of {trial} is damaged, upload it again")
            f.close()
            os.replace(f.name, target)
        except BaseException:
            f.close()
            os.unlink(f.name)
            raise
    return target


def delete(transport: Transport, trial: str, name: str) -> None:
    """Delete an artifact, if it is there."""
    transport.call_identified("DeleteArtifact", {"name": trial, "file": name})
