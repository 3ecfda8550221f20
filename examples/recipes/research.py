"""Research over a folder; docs/recipes.md says more."""

from core import Assistant

LLM = {"model_type": "llama_cpp"}
reader = Assistant(
    llm=LLM,
    files=["assets/samples/*.pdf"],
    rag_cfg={"index_path": "index"},
)
reply = reader.ask("Within how many days must a claim be made?")
print(reply.text)
for one in reply.citations:
    print(f"[{one.mark}]", one.document, f"page {one.page}")
for claim in reply.claims:
    print(claim.verdict)
