"""Invoices as values, with their pages; docs/recipes.md says more."""

from datetime import date

from pydantic import BaseModel

from core import Assistant, Cited

LLM = {"model_type": "llama_cpp"}


class Invoice(BaseModel):
    number: Cited[str]
    total: Cited[float]
    due: Cited[date] | None


def read(path: str) -> Invoice:
    """What an invoice says."""
    reader = Assistant(llm=LLM, files=[path])
    return reader.ask("What does this invoice say?", output_type=Invoice).output


invoice = read("contract.pdf")
for name, field in invoice:
    if field is not None:
        print(name, field.value, field.document, f"page {field.page}")
