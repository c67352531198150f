/** One step of the schema; versions count from 1 without a gap. A released step is never edited: what changes is a further step. */
export interface Migration {
  readonly version: number
  readonly name: string
  readonly up: string
  readonly down: string
  /** For what PostgreSQL cannot do in a transaction. If it fails half-way the schema is `dirty`, and a person must look. */
  readonly outsideTransaction?: boolean
}

/*
 * Documents and configurations are text: jsonb would lose order, numbers and doubled members. Names are compared by code point,
 * whatever the language of the database. Times that are served are text as they are served; leases and due times are the database's own.
 */
const tables: Migration = {
  version: 1,
  name: 'tables',
  up: `
    CREATE TABLE revision (
      single boolean PRIMARY KEY DEFAULT true CHECK (single),
      data bigint NOT NULL,
      structure bigint NOT NULL,
      stamped_at timestamptz NOT NULL
    );
    INSERT INTO revision (data, structure, stamped_at) VALUES (0, 0, '-infinity');

    CREATE TABLE source (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text COLLATE "C" NOT NULL UNIQUE,
      type text NOT NULL,
      config text NOT NULL,
      creation text NOT NULL CHECK (creation IN ('CONFIG', 'API')),
      created_at text NOT NULL,
      updated_at text NOT NULL,
      phase text NOT NULL CHECK (phase IN ('pending', 'complete', 'failed')),
      attempt_count integer NOT NULL DEFAULT 0,
      last_attempt text,
      last_success text,
      server_count integer NOT NULL DEFAULT 0,
      message text NOT NULL DEFAULT '',
      problems text NOT NULL DEFAULT '[]',
      problem_count integer NOT NULL DEFAULT 0,
      hash text,
      state text,
      due_at timestamptz,
      manual boolean NOT NULL DEFAULT false,
      lease_owner text,
      lease_token text,
      lease_until timestamptz
    );

    CREATE TABLE registry (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text COLLATE "C" NOT NULL UNIQUE,
      creation text NOT NULL CHECK (creation IN ('CONFIG', 'API')),
      position integer NOT NULL DEFAULT 0,
      sources text[] NOT NULL,
      claims text,
      created_at text NOT NULL,
      updated_at text NOT NULL
    );

    CREATE TABLE entry (
      source_id bigint NOT NULL REFERENCES source ON DELETE CASCADE,
      name text COLLATE "C" NOT NULL,
      version text COLLATE "C" NOT NULL,
      document text NOT NULL,
      hash text NOT NULL,
      status text NOT NULL CHECK (status IN ('active', 'deprecated', 'deleted')),
      status_message text,
      published_at text NOT NULL,
      updated_at text NOT NULL,
      status_changed_at text NOT NULL,
      claims text,
      revision bigint NOT NULL,
      PRIMARY KEY (source_id, name, version)
    );
    CREATE INDEX entry_revision ON entry (revision, source_id, name, version);`,
  down: `
    DROP TABLE entry;
    DROP TABLE registry;
    DROP TABLE source;
    DROP TABLE revision;`,
}

export const migrations: readonly Migration[] = [tables]
