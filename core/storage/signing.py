"""Signs addresses of an S3 store (Signature Version 4, in the query), with the headers that it is to answer with.

The package that speaks with stores signs addresses too, but none that say how the bytes are to be saved.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Keys:
    """What signs; the token goes with keys that hold for a while."""

    access: str = field(repr=False)
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


def signed(address: str, keys: Keys, region: str, seconds: float, now: datetime, answering: Mapping[str, str]) -> str:
    """An address from which bytes may be fetched for some seconds.

    Args:
        address: Of the bytes, as the store knows it.
        now: In UTC.
        answering: Headers of the answer, by the names of the store's query (`response-content-type` …).
    """
    parts = urlsplit(address)
    day, moment = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{day}/{region}/s3/aws4_request"
    query = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{keys.access}/{scope}",
        "X-Amz-Date": moment,
        "X-Amz-Expires": str(int(seconds)),
        "X-Amz-SignedHeaders": "host",
        **({"X-Amz-Security-Token": keys.token} if keys.token else {}),
        **answering,
    }
    path = quote(parts.path, safe="/-_.~")
    asked = "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))
    request = "\n".join(["GET", path, asked, f"host:{parts.netloc}", "", "host", "UNSIGNED-PAYLOAD"])
    to_sign = "\n".join(["AWS4-HMAC-SHA256", moment, scope, sha256(request.encode()).hexdigest()])
    key = f"AWS4{keys.secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    return f"{parts.scheme}://{parts.netloc}{path}?{asked}&X-Amz-Signature={signature}"
