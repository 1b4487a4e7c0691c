"""Options of remote storage, said once: polars, which reads, and fsspec, which lists, call them differently.

Users of ``key`` and ``secret`` (s3fs) and users of ``aws_access_key_id`` and
``aws_secret_access_key`` (polars) means the same; each reader gets its own words. Options of stores other
than S3, and words that are not known here, are passed on as they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

_S3 = ("s3", "s3a")
# What polars calls an option, without the aws_ before it -> what s3fs calls it.
_FOR_S3FS = {
    "access_key_id": "key",
    "secret_access_key": "secret",
    "session_token": "token",
    "endpoint_url": "endpoint_url",
    "skip_signature": "anon",
}
_FROM_S3FS = {theirs: ours for ours, theirs in _FOR_S3FS.items()} | {"region_name": "region"}
_ALONE = {"endpoint": "endpoint_url", "default_region": "region"}
_SWITCHES = ("skip_signature", "allow_http")


def for_polars(path: str, storage: Mapping[str, Any]) -> dict[str, Any]:
    """The options in the words of polars.

    Examples
    --------
    >>> from calipers.inputs.files.storage_options import for_polars
    >>> for_polars("s3://bucket/a.parquet", {"key": "me", "endpoint_url": "http://127.0.0.1:9000"})
    {'aws_access_key_id': 'me', 'aws_endpoint_url': 'http://127.0.0.1:9000', 'aws_allow_http': 'true'}
    """
    if not _is_s3(path):
        return dict(storage)
    known, others = _split(storage)
    place = known.get("endpoint_url") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if str(place).startswith("http://"):  # said with the address; polars wants to hear it twice
        known.setdefault("allow_http", True)
    words = {name: str(value).lower() if name in _SWITCHES else str(value) for name, value in known.items()}
    return {f"aws_{name}": value for name, value in words.items()} | others


def for_fsspec(path: str, storage: Mapping[str, Any]) -> dict[str, Any]:
    """The options in the words of fsspec and its file system.

    Examples
    --------
    >>> from calipers.inputs.files.storage_options import for_fsspec
    >>> for_fsspec("s3://bucket/", {"aws_access_key_id": "me", "aws_region": "eu-west-1"})
    {'key': 'me', 'client_kwargs': {'region_name': 'eu-west-1'}}
    """
    if not _is_s3(path):
        return dict(storage)
    known, others = _split(storage)
    found = {_FOR_S3FS[name]: known[name] for name in _FOR_S3FS if name in known}
    if "anon" in found:
        found["anon"] = str(found["anon"]).lower() == "true"
    if "region" in known:
        found["client_kwargs"] = {"region_name": known["region"]}
    return found | others


def _is_s3(path: str) -> bool:
    return path.split("://", 1)[0] in _S3


def _split(storage: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options with a meaning for both, by their plain names, and the others."""
    flat = dict(storage)
    flat |= flat.pop("client_kwargs", None) or {}
    known, others = {}, {}
    for word, value in flat.items():
        plain = word.lower().removeprefix("aws_")
        plain = _FROM_S3FS.get(plain, _ALONE.get(plain, plain))
        if plain in _FOR_S3FS or plain in ("region", "allow_http"):
            known[plain] = value
        else:
            others[word] = value
    return known, others
