-- The database and its owner, who is no superuser:  psql -v ON_ERROR_STOP=1 -f deploy/owner.sql
-- Run by a superuser on a server that has neither. The tables and the logins of the tasks come from `muniment db migrate`.
CREATE ROLE muniment_owner LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS;
-- A password of its own, never the superuser's, from the file that the environment names.
\getenv file OWNER_PASSWORD_FILE
\if :{?file}
\set password `cat "$OWNER_PASSWORD_FILE"`
ALTER ROLE muniment_owner PASSWORD :'password';
\endif
-- What a purge needs to clear the write-ahead log of what was erased.
GRANT pg_checkpoint, pg_monitor TO muniment_owner;
CREATE DATABASE muniment OWNER muniment_owner;
\connect muniment
GRANT EXECUTE ON FUNCTION pg_switch_wal() TO muniment_owner;
-- And to see files that a killed server left and no table owns.
GRANT EXECUTE ON FUNCTION pg_ls_dir(text) TO muniment_owner;
CREATE EXTENSION vector SCHEMA public;
