"""A route of FastAPI that streams; docs/recipes.md says more."""

import json

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient

from core import BasicAgent, ParlourError

LLM = {"model_type": "llama_cpp"}
app = FastAPI()
guide = BasicAgent(llm=LLM)


@app.get("/ask")
async def ask(question: str) -> StreamingResponse:
    """The answer, piece by piece."""

    async def lines():
        try:
            async for event in guide.events(question):
                if event.kind == "text_delta":
                    yield f"data: {json.dumps(event.text)}\n\n"
        except ParlourError as error:
            yield f"event: failed\ndata: {json.dumps(str(error))}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


said = TestClient(app).get("/ask", params={"question": "What do herons eat?"}).text
print("".join(json.loads(line[6:]) for line in said.splitlines() if line))
