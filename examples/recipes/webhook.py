"""A webhook whose signature is checked; docs/recipes.md says more."""

import hashlib
import hmac
import json
import time

from fastapi import FastAPI, HTTPException, Request
from fastapi.testclient import TestClient

from core import BasicAgent

LLM = {"model_type": "llama_cpp"}
SECRET = b"the signing secret of your app"
bot = FastAPI()
helper = BasicAgent(llm=LLM)


def signature(sent_at: str, body: bytes) -> str:
    """What a sender who knows the secret writes beside a body."""
    return "v0=" + hmac.new(SECRET, f"v0:{sent_at}:".encode() + body, hashlib.sha256).hexdigest()


def check(request: Request, body: bytes) -> None:
    """Refuse what is not signed, and what somebody sends again later."""
    sent_at = request.headers.get("x-slack-request-timestamp", "")
    given = request.headers.get("x-slack-signature", "")
    is_fresh = sent_at.isdecimal() and abs(time.time() - int(sent_at)) < 300
    if not is_fresh or not hmac.compare_digest(given.encode(), signature(sent_at, body).encode()):
        raise HTTPException(401, "The signature is wrong.")


@bot.post("/slack")
async def heard(request: Request) -> dict[str, str]:
    """Answer in the thread that somebody wrote in."""
    body = await request.body()
    check(request, body)
    sent = json.loads(body)
    if sent["type"] == "url_verification":
        return {"challenge": sent["challenge"]}
    event = sent["event"]
    if "bot_id" in event:  # its own words
        return {}
    async with helper.session("threads.db", event.get("thread_ts", event["ts"])) as session:
        return {"text": (await session.aask(event["text"])).text}


sent = json.dumps({"type": "event_callback", "event": {"ts": "1.0", "text": "I am Ann."}}).encode()
now = str(int(time.time()))
signed = {"x-slack-request-timestamp": now, "x-slack-signature": signature(now, sent)}
caller = TestClient(bot)
print(caller.post("/slack", content=sent, headers=signed).json())
print(caller.post("/slack", content=sent, headers={**signed, "x-slack-signature": "v0=00"}).status_code)
