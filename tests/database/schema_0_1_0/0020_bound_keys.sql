-- A key for one end user is an agent's and nothing else: with another role it would reach further than that user.

-- Those that do are revoked. The owner sees them meanwhile.
ALTER TABLE api_keys NO FORCE ROW LEVEL SECURITY;
UPDATE api_keys SET revoked_at = now(), revoked_by = 'muniment'
WHERE user_id IS NOT NULL AND roles <> ARRAY['agent'] COLLATE "C" AND revoked_at IS NULL;
ALTER TABLE api_keys
  DROP CONSTRAINT api_keys_check3,
  ADD CONSTRAINT api_keys_for_one_user CHECK (user_id IS NULL OR roles = ARRAY['agent'] OR revoked_at IS NOT NULL);
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
