"""Conversations from elsewhere: Parlour's bundles, and what other applications export."""
