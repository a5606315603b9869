-- Who speaks in a capture, by the right of the credential it came with (ISO-8), and what else a credential is bounded by (ISO-5).

-- What the credential could vouch for when the capture was written: 'user', the words of the end user; or the tool that the
-- origin names. NULL is the author's own word, and so are all captures of before: nobody had vouched for them.
-- Captures have no UPDATE for any login, so it stays what it was.
ALTER TABLE captures ADD COLUMN vouched text COLLATE "C";
ALTER TABLE captures ADD CONSTRAINT captures_vouched CHECK (
  vouched IS NULL
  OR (vouched = 'user' AND (kind = 'message' OR source = 'end_user') AND (origin IS NULL OR NOT starts_with(origin, 'tool:')))
  OR (origin IS NOT NULL AND vouched = origin AND starts_with(origin, 'tool:') AND length(origin) > 5)
);
ALTER TABLE memories ADD COLUMN vouched text COLLATE "C";
-- For figures about messages that have left for an archive.
ALTER TABLE archived_captures ADD COLUMN vouched text COLLATE "C";

-- An end user may be the source of a capture.
ALTER TABLE captures DROP CONSTRAINT captures_source_check;
ALTER TABLE captures ADD CONSTRAINT captures_source_check CHECK (source IN ('agent', 'operator', 'system', 'end_user'));
ALTER TABLE candidates DROP CONSTRAINT candidates_source_check;
ALTER TABLE candidates ADD CONSTRAINT candidates_source_check CHECK (source IN ('agent', 'operator', 'system', 'end_user'));

-- Keys: the tools and channels they may speak for, and the packs that their runs may pin; NULL is no bound of their own. The
-- digest of a key covers all of it, so that a row that was changed opens nothing.
ALTER TABLE api_keys ADD COLUMN tools text[] COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE api_keys ADD COLUMN channels text[] COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE api_keys ADD COLUMN packs text[] COLLATE "C";
-- Roles may be declared by a pack. An agent or an end user still has none of the built-in ones but agent.
ALTER TABLE api_keys DROP CONSTRAINT api_keys_roles_check;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_roles_check CHECK (cardinality(roles) BETWEEN 1 AND 64);
ALTER TABLE api_keys DROP CONSTRAINT api_keys_kind_check;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_kind_check CHECK (kind IN ('agent', 'operator', 'system', 'end_user'));
ALTER TABLE api_keys DROP CONSTRAINT api_keys_check2;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_agents_are_no_persons CHECK (
  kind NOT IN ('agent', 'end_user')
  OR ('agent' = ANY (roles) AND NOT roles && ARRAY['reviewer', 'correction_writer', 'privacy_officer', 'auditor', 'admin'])
);
ALTER TABLE api_keys DROP CONSTRAINT api_keys_for_one_user;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_for_one_user CHECK (
  user_id IS NULL OR revoked_at IS NOT NULL
  OR ('agent' = ANY (roles) AND NOT roles && ARRAY['reviewer', 'correction_writer', 'privacy_officer', 'auditor', 'admin'])
);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_of_end_users CHECK (
  kind <> 'end_user' OR user_id = principal_id OR revoked_at IS NOT NULL
);
GRANT SELECT (tools, channels, packs) ON api_keys TO muniment_recall, muniment_auditor;
