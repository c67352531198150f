import type { Logger } from '@thv/telemetry/log'
import { type Client, DatabaseError, escapeIdentifier } from 'pg'

/** Has every right on the rows; logins of the server are members of it. */
export const SERVER_ROLE = 'toolhive_registry_server'

const RIGHTS = 'SELECT, INSERT, UPDATE, DELETE'

/**
 * Gives the role its rights on present and future tables, and makes `user` a member. Where the migration user may not do one of
 * these, an administrator has to; a warning gives the statement. Harmless when all is there.
 */
export async function ensureServerRole(client: Client, user: string, log: Logger): Promise<void> {
  const { rows } = await client.query<{ same: boolean }>('SELECT current_user = $1 AS same', [user])
  // The owner of the tables needs no role; it is for other users.
  const tell = rows[0]?.same ? log.debug.bind(log) : log.warn.bind(log)
  const attempt = async (what: string, statement: string) => {
    try {
      await client.query(statement)
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error
      // Another database of the same server may be migrated at the same moment.
      if (error.code === '42710' || error.code === '23505') return
      tell(`${what} failed; an administrator of the database has to do it, then run \`migrate up\` again`, {
        error: error.message,
        statement,
      })
    }
  }
  if (!(await roleExists(client))) await attempt(`making the role ${SERVER_ROLE}`, `CREATE ROLE ${SERVER_ROLE} NOLOGIN`)
  if (!(await roleExists(client))) return
  const schema = await currentSchema(client)
  await attempt('granting the schema', `GRANT USAGE ON SCHEMA ${schema} TO ${SERVER_ROLE}`)
  await attempt('granting the tables', `GRANT ${RIGHTS} ON ALL TABLES IN SCHEMA ${schema} TO ${SERVER_ROLE}`)
  await attempt('granting future tables', `ALTER DEFAULT PRIVILEGES IN SCHEMA ${schema} GRANT ${RIGHTS} ON TABLES TO ${SERVER_ROLE}`)
  if (!(await mayUse(client, user)))
    await attempt(`making ${user} a member of ${SERVER_ROLE}`, `GRANT ${SERVER_ROLE} TO ${escapeIdentifier(user)}`)
}

/** So that the role can be dropped once nothing of ours is left. */
export async function revokeServerRole(client: Client): Promise<void> {
  if (!(await roleExists(client))) return
  const schema = await currentSchema(client)
  await client.query(`ALTER DEFAULT PRIVILEGES IN SCHEMA ${schema} REVOKE ${RIGHTS} ON TABLES FROM ${SERVER_ROLE}`)
  await client.query(`REVOKE ${RIGHTS} ON ALL TABLES IN SCHEMA ${schema} FROM ${SERVER_ROLE}`)
  await client.query(`REVOKE USAGE ON SCHEMA ${schema} FROM ${SERVER_ROLE}`)
}

async function roleExists(client: Client): Promise<boolean> {
  return (await client.query('SELECT FROM pg_roles WHERE rolname = $1', [SERVER_ROLE])).rowCount === 1
}

async function mayUse(client: Client, user: string): Promise<boolean> {
  const { rows } = await client.query<{ granted: boolean }>(
    "SELECT rolname = current_user OR pg_has_role(rolname, $2, 'USAGE') AS granted FROM pg_roles WHERE rolname = $1",
    [user, SERVER_ROLE],
  )
  return rows[0]?.granted ?? false
}

async function currentSchema(client: Client): Promise<string> {
  const { rows } = await client.query<{ schema: string | null }>('SELECT current_schema() AS schema')
  return escapeIdentifier(rows[0]?.schema ?? 'public')
}
