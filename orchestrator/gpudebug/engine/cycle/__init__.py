"""`next`: one stage of a campaign, here or in a detached worker."""
