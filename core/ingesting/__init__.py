"""Taking very many files into a named library: from folders and S3 stores, here or on the machines of a cluster."""
