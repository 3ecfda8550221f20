"""Taking documents in: what arrives with a message or by a link, the jobs that read it, and named libraries."""
