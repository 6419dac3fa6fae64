"""Jobs of a cluster: what is submitted, what is seen of a job, and where it runs."""
