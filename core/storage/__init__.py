"""What must outlive the process: owners, conversations, runs, files and documents."""
