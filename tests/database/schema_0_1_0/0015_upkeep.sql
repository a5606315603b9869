-- What the jobs ask for in every run, found without reading what is long decided.

-- Proposals that policy may promote alone, in the order of their commits.
CREATE INDEX proposals_by_policy ON proposals (tenant_id, seq, proposal_id) WHERE auto_eligible;
