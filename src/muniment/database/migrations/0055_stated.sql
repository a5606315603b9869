-- The statements that a person made in their own name are listed for them, the latest first.
-- oldest program: 0053
CREATE INDEX captures_stated ON captures (tenant_id, author, seq, capture_id)
  WHERE source = 'operator' AND kind = 'statement' AND vouched IS NULL;
